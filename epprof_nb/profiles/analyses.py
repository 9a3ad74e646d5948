"""The analyses of a profile, as methods that return DataFrames. One file per subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.analysis.sql.limits import MAX_BYTES, TIME_LIMIT_S
from epprof_nb.profiles.breakdowns import Breakdowns
from epprof_nb.profiles.critical_path import CriticalPath
from epprof_nb.profiles.experiments import Experiments
from epprof_nb.profiles.findings import Findings
from epprof_nb.profiles.generation import GenerationTables
from epprof_nb.profiles.memory import Memory
from epprof_nb.profiles.onnx_nodes import NodeTables
from epprof_nb.profiles.training import TrainingTables
from epprof_nb.util.method_names import name_methods

if TYPE_CHECKING:
    import pandas as pd


class ProfileAnalyses(
    Breakdowns,
    TrainingTables,
    GenerationTables,
    NodeTables,
    Memory,
    Findings,
    CriticalPath,
    Experiments,
):
    """Tables of one profiling session, with their analyses.

    `epprof_nb.Profile` adds views and files.
    """

    def sql(
        self, query: str, *, time_limit_s: float = TIME_LIMIT_S, max_bytes: int = MAX_BYTES
    ) -> pd.DataFrame:
        """Result of a SQL query over the tables, by DuckDB.

        Parameters
        ----------
        query
            One SELECT statement in DuckDB's dialect. It reads the tables of the profile (``ops``,
            ``activities``, ``api_calls``, ``graphs``, ``memory``, ``overhead``, ``stacks``) with
            the same columns; ``info``, with a JSON ``value`` for each ``key``; and the views
            ``device_work`` (the activities that keep a device busy), ``busy`` (``device_id``,
            ``start_ns`` and ``end_ns`` of the disjoint intervals in which a device was busy) and
            ``idle`` (the intervals between them). ``nested_ops`` has the columns of ``ops`` and
            ``is_outermost``: whether an op has no ancestor of the same name, type and place. Sums
            over these ops do not count time twice. ``insights`` has the findings and ``evidence_1``
            the rows behind the first one. Missing ids and names are NULL.
        time_limit_s
            Time after which the call raises TimeoutError, seconds.
        max_bytes
            Maximum memory of the query and of its result, bytes each. Functions that make one long
            list, such as ``range`` and ``list_sort``, can exceed it.

        Returns
        -------
        frame
            The rows. Integers and their sums are int64, or Int64 if a value is missing.

        Raises
        ------
        ImportError
            If DuckDB is not installed: ``pip install epprof-nb[sql]``.
        ValueError
            If the query fails or is not one SELECT statement. Queries cannot change the profile,
            read or write files, or install extensions.
        TimeoutError, MemoryError
            If a limit is exceeded. DuckDB cannot interrupt a function that works on one very long
            list or text, such as ``list_sort`` or ``damerau_levenshtein``: the call returns soon
            after the limit, but the function continues in a background thread until it ends or
            Python exits.

        Examples
        --------
        >>> prof.sql(
        ...     "select name, sum(duration_ns) t from activities group by all order by t desc"
        ... )  # doctest: +SKIP
        """
        from epprof_nb.analysis.sql.in_this_process import sql

        return sql(self, query, time_limit_s=time_limit_s, max_bytes=max_bytes)


name_methods("Profile", *ProfileAnalyses.__bases__, ProfileAnalyses)
