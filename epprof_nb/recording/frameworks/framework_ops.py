"""Registry of the framework ops: native payload id to operator type, source and arguments.

The native core stores only the id and the name of such an op. This module keeps the rest until the
process ends, because a profile may be built at any later time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.recording.ranges.bounded_arguments import as_json
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    import numpy.typing as npt

# Categories, as in native/core/records.h.
CALL, RANGE, NVTX, OPERATOR, AUTOGRAD_NODE, COLLECTION, TASK = 6, 7, 8, 9, 10, 11, 12
FRAMEWORK_TYPES = ("call", "range", "range", "operator", "autograd_node", "gc", "task")
FRAMEWORK_CATEGORIES = ("framework", "user", "user", "operator", "operator", "python", "framework")

OF_KINDS = (CALL, RANGE, COLLECTION)
"""Categories whose payload ids are those of this module."""

FUSED = ("fused", "fused_backward")
"""Op types of kernels that belong to several modules, in the forward and backward pass."""

_MAX_KINDS = 200_000
"""Distinct kinds with arguments; further ones are recorded without arguments."""


@dataclass(slots=True, eq=False)
class OpKind:
    """Columns that all ops with one payload id share.

    Attributes
    ----------
    op_type, source
        Values of these columns.
    args
        Arguments as JSON; None if there are none. They may be set after the op has ended.
    """

    op_type: str
    source: str
    args: str | None = None

    def set_args(self, args: dict[str, object]) -> None:
        """Set the arguments."""
        self.args = as_json(args)


_kinds: list[OpKind] = []
_ids: dict[tuple[str, str, str | None], int] = {}
_lock = fork_safe_lock()


def kind_id(op_type: str, source: str, **args: object) -> int:
    """Return the payload id of a kind of op; equal kinds have the same id."""
    return id_of(op_type, source, json.dumps(args, default=str) if args else None)


def id_of(op_type: str, source: str, args: str | None) -> int:
    """Return the payload id of a kind of op with its arguments as JSON; see `kind_id`."""
    key = (op_type, source, args)
    known = _ids.get(key)
    if known is not None:
        return known
    with _lock:
        if len(_ids) >= _MAX_KINDS:
            key = (op_type, source, None)
        if key not in _ids:
            _ids[key] = _append(OpKind(*key))
        return _ids[key]


def new_kind(op_type: str, source: str) -> tuple[int, OpKind]:
    """Return the payload id and the kind of one op, whose arguments may follow."""
    kind = OpKind(op_type, source)
    with _lock:
        return _append(kind), kind


def _append(kind: OpKind) -> int:
    _kinds.append(kind)
    return len(_kinds) - 1


def kinds_of(payload: npt.NDArray[np.int64]) -> dict[int, OpKind]:
    """Return the kinds of some payload ids."""
    return {number: _kinds[number] for number in np.unique(payload).tolist()}
