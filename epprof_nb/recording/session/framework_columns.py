"""Columns of the ops table that framework ops take from their kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.data.names import CategoryColumn
from epprof_nb.recording.frameworks.framework_ops import (
    AUTOGRAD_NODE,
    NVTX,
    OF_KINDS,
    OPERATOR,
    TASK,
    kinds_of,
)
from epprof_nb.recording.nvtx.range_arguments import nvtx_kinds
from epprof_nb.recording.torch.operator_columns import with_operators

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.data.table import Table


def add_framework_columns(
    ops: Table, category: npt.NDArray[Any], payload: npt.NDArray[Any]
) -> Table:
    """Fill in the columns of the ops whose details their framework keeps.

    Parameters
    ----------
    ops
        The ops of a recording.
    category, payload
        Native columns of the same rows.
    """
    rows = np.flatnonzero(category == NVTX)
    if len(rows):
        from epprof_nb.recording.jax.hlo_ranges import is_of_xla, with_hlo_ranges

        numbers = payload[rows].astype(np.int64)
        kinds = nvtx_kinds(numbers)
        ops = _with_kinds(ops, rows, numbers, kinds)
        of_xla = [number for number, kind in kinds.items() if is_of_xla(kind)]
        ops = with_hlo_ranges(ops, rows, np.isin(numbers, of_xla))
    rows = np.flatnonzero(category == TASK)
    if len(rows):
        source = ops.names("source").replaced(rows, CategoryColumn.constant("dask", len(rows)))
        ops = ops.replace(source=source)
    rows = np.flatnonzero(np.isin(category, (OPERATOR, AUTOGRAD_NODE)))
    return with_operators(ops, rows, payload[rows].astype(np.int64)) if len(rows) else ops


def add_columns_of_kinds(
    ops: Table, category: npt.NDArray[Any], payload: npt.NDArray[Any]
) -> Table:
    """Fill in the columns of the ops whose kinds Python code has registered."""
    rows = np.flatnonzero(np.isin(category, OF_KINDS))
    if not len(rows):
        return ops
    numbers = payload[rows].astype(np.int64)
    return _with_kinds(ops, rows, numbers, kinds_of(numbers))


def _with_kinds(
    ops: Table, rows: npt.NDArray[Any], numbers: npt.NDArray[Any], kinds: dict[int, Any]
) -> Table:
    def column(name: str) -> CategoryColumn:
        values = {number: getattr(kind, name) for number, kind in kinds.items()}
        known = {number: value for number, value in values.items() if value is not None}
        return ops.names(name).replaced(rows, CategoryColumn.from_ids(numbers, known))

    return ops.replace(**{name: column(name) for name in ("op_type", "source", "args")})
