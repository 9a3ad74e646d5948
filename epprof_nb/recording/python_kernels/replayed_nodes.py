"""Replayed nodes of CUDA graphs that the provider of Python kernels captured, found in records.

CUPTI reports the nodes of a capture only during a recording. The provider always knows how many
nodes each kernel has captured. It captures one stream only, so nodes run in the order of the
capture: the k-th record of a replay belongs to the k-th node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.data.schema import MISSING
from epprof_nb.recording.python_kernels import captured_graphs
from epprof_nb.recording.recorder import RecordedGraphs, captured_nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.core.python_kernel_log import CapturedGraph
    from epprof_nb.data.table import Table


def identify(
    activities: Table,
    op: npt.NDArray[np.int64],
    replays: Sequence[tuple[int, CapturedGraph]],
) -> RecordedGraphs | None:
    """Return the nodes of the activities of replays; None if there are none.

    Parameters
    ----------
    activities
        The activities, sorted by start.
    op
        The op of each activity.
    replays
        The op of each replay, and its graph.

    Returns
    -------
    RecordedGraphs
        ``nodes``, ``capture_ops`` and ``facts``. A replay is omitted if some of its nodes were not
        recorded, or if its numbers of activities and nodes differ.
    """
    graph_of_op = dict(replays)
    rows = np.flatnonzero(
        (activities["graph_id"] != MISSING)
        & ~activities.names("kind").equals("graph_launch")
        & np.isin(op, list(graph_of_op))
    )
    if not len(rows):
        return None
    nodes: dict[int, int] = {}
    graphs: dict[int, CapturedGraph] = {}
    _, replay = np.unique(activities["correlation_id"][rows], return_inverse=True)
    by_replay = rows[np.argsort(replay, kind="stable")]
    for of_replay in np.split(by_replay, np.cumsum(np.bincount(replay))[:-1]):
        graph = graph_of_op[int(op[of_replay[0]])]
        captured = [node.op_id for node in graph.nodes for _ in range(node.launches)]
        if len(captured) != len(of_replay):
            continue
        graphs[int(activities["graph_id"][of_replay[0]])] = graph
        nodes.update(zip(activities["graph_node_id"][of_replay].tolist(), captured, strict=True))
    if not graphs:
        return None
    facts = [graph._replace(graph_id=number) for number, graph in graphs.items()]
    return RecordedGraphs(
        captured_nodes(nodes),
        captured_graphs.capture_ops(list(graphs.values())),
        captured_graphs.table(facts),
    )
