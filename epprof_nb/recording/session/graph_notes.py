"""Notes on work of CUDA graphs whose ops CUPTI does not report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.data.schema import MISSING
from epprof_nb.util.format import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.data.table import Table


def notes_on_graphs(activities: Table) -> Iterator[str]:
    """Yield notes on work of graphs without the op that launched or captured it.

    Parameters
    ----------
    activities
        The activities of a profile, with their ops.
    """
    graph = activities["graph_id"]
    in_graph = (graph != MISSING) & ~activities.names("kind").equals("graph_launch")
    if not in_graph.any():
        return
    unlaunched = int((in_graph & (activities["correlation_id"] <= 0)).sum())
    if unlaunched:
        yield (
            f"{plural(unlaunched, 'activity', 'activities')} of CUDA graphs without an op: "
            "CUPTI reports the work in the body of a conditional node without the launch of its "
            "graph, and no other work of the graph encloses it. Put a kernel before and after the "
            "conditional node, or launch the graph once per profile."
        )
    # A graph that was captured outside of profiles has no known op.
    known = activities["capture_op_id"] != MISSING
    partly = np.intersect1d(graph[in_graph & known], graph[in_graph & ~known])
    unknown = int((in_graph & ~known & np.isin(graph, partly)).sum())
    if unknown:
        yield (
            f"{plural(unknown, 'activity', 'activities')} of CUDA graphs without a capture_op_id, "
            "though others of their graphs do: no op was open at their capture, or CUPTI does not "
            "report where their nodes come from."
        )
