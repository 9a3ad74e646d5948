"""Registry of the framework ops: native payload id to operator type, source and arguments.

The native core stores only the id and the name of such an op. The rest is kept here for the life of
the process, because a profile may be built at any later time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.data.names import CategoryColumn
from epprof_nb.instrument.range_args import as_json
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.data.table import Table

# Categories, as in native/core/records.h.
CALL, RANGE = 6, 7
FRAMEWORK_TYPES = ("call", "range")
FRAMEWORK_CATEGORIES = ("framework", "user")

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
    text = json.dumps(args, default=str) if args else None
    key = (op_type, source, text)
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


def add_framework_columns(
    ops: Table, category: npt.NDArray[Any], payload: npt.NDArray[Any]
) -> Table:
    """Fill in the columns that framework ops take from their kind.

    Parameters
    ----------
    ops
        The ops of a recording.
    category, payload
        Native columns of the same rows.
    """
    rows = np.flatnonzero((category == CALL) | (category == RANGE))
    if not len(rows):
        return ops
    ids = payload[rows].astype(np.int64)
    used = {i: _kinds[i] for i in np.unique(ids).tolist()}

    def column(name: str, values: dict[int, str]) -> CategoryColumn:
        return ops.names(name).replaced(rows, CategoryColumn.from_ids(ids, values))

    return ops.replace(
        op_type=column("op_type", {i: kind.op_type for i, kind in used.items()}),
        source=column("source", {i: kind.source for i, kind in used.items()}),
        args=column("args", {i: k.args for i, k in used.items() if k.args is not None}),
    )
