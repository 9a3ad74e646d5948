"""Device times that a trace lacks: missing in tables of ops, instead of 0.

A trace may be of a tool that records no device, or that does not say which op launched a kernel.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec

import numpy as np

from epprof_nb.analysis.base.result_table import OptionalColumn, ResultTable
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.arrays.types import BoolArray

_P = ParamSpec("_P")
_OF_DEVICE = frozenset({
    "device_ns", "self_device_ns", "share", "self_share", "kernels", "memcpys", "memsets", "bytes",
    "self_kernels", "self_memcpys", "self_memsets", "self_bytes", "mean_device_ns",
    "p95_device_ns", "forward_ns", "backward_ns", "optimizer_ns", "communication_ns", "other_ns",
    "busy_ns", "fallback_bytes", "fallback_copy_ns",
})  # fmt: skip
"""Columns of device work in tables of ops."""


def has_device_times(index: ProfileIndex) -> bool:
    """Whether the device times of ops are known, for `ProfileIndex.cached`."""
    if "trace_format" not in index.profile.info:
        return True
    return bool((index.is_device_work & (index.activity_op != MISSING)).any())


def missing_if_unknown(
    table_of: Callable[Concatenate[ProfileIndex, _P], ResultTable],
) -> Callable[Concatenate[ProfileIndex, _P], ResultTable]:
    """Decorate a table of ops: device times that its trace lacks are missing.

    Rows of work without an op keep theirs.
    """

    @wraps(table_of)
    def known_only(index: ProfileIndex, *args: _P.args, **kwargs: _P.kwargs) -> ResultTable:
        table = table_of(index, *args, **kwargs)
        if index.cached(has_device_times):
            return table
        is_unknown = table["device_ns" if "device_ns" in table else "self_device_ns"] == 0
        return table.replace({
            name: _without(table.column(name), is_unknown)
            for name in table.columns
            if name in _OF_DEVICE
        })  # fmt: skip

    return known_only  # type: ignore[return-value] # it is called as the table is


def _without(column: Column, is_unknown: BoolArray) -> Column:
    if isinstance(column, OptionalColumn):
        return OptionalColumn(column.numbers, column.is_missing | is_unknown)
    numbers = np.asarray(column)
    if numbers.dtype.kind == "i":
        return OptionalColumn(numbers, is_unknown)
    return np.where(is_unknown, np.nan, numbers)
