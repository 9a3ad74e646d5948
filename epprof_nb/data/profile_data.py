"""ProfileData: the tables, info and sources of one profiling session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb.data.empty_tables import explained
from epprof_nb.data.result_columns import with_columns
from epprof_nb.data.schema import TABLES
from epprof_nb.data.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

_SCHEMAS = {schema.name: schema for schema in TABLES}


class ProfileData:
    """Tables, info and sources of one profiling session.

    Parameters
    ----------
    tables
        Table name to `Table`; tables left out are empty.
    info
        Metadata of the recording, such as devices and dropped records; JSON-serialisable.
    sources
        Cell name (such as ``In[3]``) to the cell's source text.

    Notes
    -----
    The tables are columns (NumPy arrays). Each access builds a new DataFrame, so changing it does
    not change the profile.
    """

    def __init__(
        self,
        tables: Mapping[str, Table] | None = None,
        info: Mapping[str, Any] | None = None,
        sources: Mapping[str, str] | None = None,
    ) -> None:
        given = dict(tables or {})
        unknown = set(given) - set(_SCHEMAS)
        if unknown:
            raise ValueError(f"a profile has no table {sorted(unknown)}")
        self.tables: dict[str, Table] = {
            name: given[name] if name in given else Table(schema)
            for name, schema in _SCHEMAS.items()
        }
        self.info: dict[str, Any] = dict(info or {})
        self.sources: dict[str, str] = dict(sources or {})

    @property
    @with_columns("ops")
    def ops(self) -> pd.DataFrame:
        """One row per op.

        {columns}
        """
        return explained(self, "ops", self.tables["ops"].to_frame())

    @property
    @with_columns("activities")
    def activities(self) -> pd.DataFrame:
        """One row per activity of a device.

        {columns}

        Notes
        -----
        Changes to the frame do not affect the profile. Only ``to_numpy()`` of an Int64 column may
        return the profile's own array, which pandas does not protect: use ``to_numpy(copy=True)``
        before you write to it. The same holds for `ops` and `api_calls`.
        """
        return explained(self, "activities", self.tables["activities"].to_frame())

    @property
    @with_columns("api_calls")
    def api_calls(self) -> pd.DataFrame:
        """One row per API call.

        {columns}
        """
        return explained(self, "api_calls", self.tables["api_calls"].to_frame())

    @property
    @with_columns("graphs")
    def graphs(self) -> pd.DataFrame:
        """One row per CUDA graph that was launched.

        {columns}
        """
        return explained(self, "graphs", self.tables["graphs"].to_frame())

    @property
    @with_columns("memory")
    def memory(self) -> pd.DataFrame:
        """One row per allocation or release, if recorded.

        {columns}
        """
        return explained(self, "memory", self.tables["memory"].to_frame())

    @property
    @with_columns("overhead")
    def overhead(self) -> pd.DataFrame:
        """One row per interval of CUPTI's overhead, if recorded.

        {columns}
        """
        return explained(self, "overhead", self.tables["overhead"].to_frame())

    @property
    @with_columns("thread_waits")
    def thread_waits(self) -> pd.DataFrame:
        """One row per wait of a Python thread for another one, or for the clock.

        {columns}

        Notes
        -----
        `critical_path` and `what_if` follow these waits to the other thread.
        """
        return explained(self, "thread_waits", self.tables["thread_waits"].to_frame())

    @property
    @with_columns("stacks")
    def stacks(self) -> pd.DataFrame:
        """One row per Python stack in which work was launched, and per stack that called one.

        {columns}

        Notes
        -----
        The frames of a stack are its row, the row `parent_id` and so on. `stack_id` of `activities`
        and `api_calls` refers to the index. `by_stack` and `by_line` sum up the work.
        """
        return explained(self, "stacks", self.tables["stacks"].to_frame())

    @property
    def wall_ns(self) -> int:
        """Length of the profile on the host's clock, nanoseconds."""
        return int(self.info.get("wall_ns", 0))
