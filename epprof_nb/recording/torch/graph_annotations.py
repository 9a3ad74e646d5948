"""PyTorch's annotations of CUDA graph nodes, as the ops that captured them.

``torch.cuda.graph(enable_annotations=True)`` stores the annotation of ``mark_kernels`` under the id
that CUPTI reports for the node in replays. For a capture outside of all profiles, the annotation is
the only known information.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from epprof_nb import _native
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING, OPS
from epprof_nb.data.table import Table
from epprof_nb.recording.ranges.bounded_arguments import as_json
from epprof_nb.recording.recorder import RecordedGraphs, captured_nodes

_MODULE = "torch.cuda._graph_annotations"
_NAMES = ("str", "name")
"""Keys with the name of an annotation: from one text, or merged by torch from several."""
_MAX_NAME = 200


class GraphAnnotations:
    """The annotations of this process, each with an op."""

    def __init__(self) -> None:
        self._of_node: dict[int, str] = {}
        self._ops: dict[str, int] = {}

    def drain(self) -> RecordedGraphs:
        """Return the nodes that were annotated since the last call, and rows for new ops."""
        read = getattr(sys.modules.get(_MODULE), "get_kernel_annotations", None)
        nodes: dict[int, int] = {}
        added: dict[int, tuple[str, str | None]] = {}
        for node, kept in list(read().items()) if read is not None else ():
            name, args = _described(kept[-1])  # from the last capture with this id
            text = f"{name}\0{args}"
            if self._of_node.get(node) == text:
                continue
            self._of_node[node] = text
            if text not in self._ops:
                self._ops[text] = _native.reserve_op_ids(1)
                added[self._ops[text]] = (name, args)
            nodes[node] = self._ops[text]
        return RecordedGraphs(captured_nodes(nodes), _table(added))


def _described(annotation: Any) -> tuple[str, str | None]:  # noqa: ANN401 - any object of the user
    """Return the name of an annotation, and its other values as JSON."""
    if not isinstance(annotation, dict):
        return str(annotation)[:_MAX_NAME], None
    key = next((key for key in _NAMES if isinstance(annotation.get(key), str)), None)
    others = {str(name): value for name, value in annotation.items() if name != key}
    args = as_json(others) if others else None
    name = annotation[key] if key is not None else json.dumps(others, default=str)
    return name[:_MAX_NAME], args


def _table(added: dict[int, tuple[str, str | None]]) -> Table | None:
    """Return rows for ops with unknown times, which are set to now."""
    if not added:
        return None
    size, now = len(added), np.full(len(added), _native.now_ns(), np.int64)
    names, args = zip(*added.values(), strict=True)
    return Table(
        OPS,
        {
            "op_id": np.array(list(added), np.int64),
            "parent_op_id": np.full(size, MISSING, np.int64),
            "name": CategoryColumn.of(names),
            "op_type": CategoryColumn.constant("range", size),
            "category": CategoryColumn.constant("user", size),
            "source": CategoryColumn.constant("torch", size),
            "args": CategoryColumn.of(args),
            "start_ns": now,
            "end_ns": now,
            "duration_ns": np.zeros(size, np.int64),
            "count": np.ones(size, np.int64),
            "status": CategoryColumn.constant("complete", size),
        },
    )
