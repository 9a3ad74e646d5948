"""Device times, launches and waits that a trace lacks: missing in tables, instead of 0.

A trace may be of a tool that records no device, that does not say which op launched a kernel, or
that records no API calls. No trace counts the records that it lacks.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import numpy as np

from epprof_nb.analysis.base.result_table import OptionalColumn, ResultTable
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.arrays.types import BoolArray, IntArray

_P = ParamSpec("_P")
_OF_DEVICE = frozenset({
    "device_ns", "self_device_ns", "share", "self_share", "kernels", "memcpys", "memsets", "bytes",
    "self_kernels", "self_memcpys", "self_memsets", "self_bytes", "mean_device_ns",
    "p95_device_ns", "forward_ns", "backward_ns", "optimizer_ns", "communication_ns", "other_ns",
    "busy_ns", "fallback_bytes", "fallback_copy_ns", "launches", "self_launches",
})  # fmt: skip
"""Columns of device work in tables of ops and lines."""
_OF_CALLS = frozenset({"waits", "wait_ns", "self_waits", "self_wait_ns"})
"""Columns of the host's waits in these tables."""


def is_trace(info: Mapping[str, Any]) -> bool:
    """Whether a profile was read from a trace, which may lack kinds of records."""
    return "trace_format" in info


def has_device_times(index: ProfileIndex) -> bool:
    """Whether the device times of ops are known, for `ProfileIndex.cached`."""
    if not is_trace(index.profile.info):
        return True
    return bool((index.is_device_work & (index.activity_op != MISSING)).any())


def has_waits(index: ProfileIndex) -> bool:
    """Whether API calls, and so the host's waits, were recorded."""
    return not is_trace(index.profile.info) or len(index.profile.tables["api_calls"]) > 0


def missing_if_unknown(
    table_of: Callable[Concatenate[ProfileIndex, _P], ResultTable],
) -> Callable[Concatenate[ProfileIndex, _P], ResultTable]:
    """Decorate a table of ops: device times and waits that its trace lacks are missing.

    Rows of work without an op keep theirs.
    """

    @wraps(table_of)
    def known_only(index: ProfileIndex, *args: _P.args, **kwargs: _P.kwargs) -> ResultTable:
        return without_unknown(index, table_of(index, *args, **kwargs))

    return known_only  # type: ignore[return-value] # it is called as the table is


def without_unknown(index: ProfileIndex, table: ResultTable, *of_device: str) -> ResultTable:
    """Return a table without the device times and waits that its trace lacks.

    `of_device` names further columns of device work, which mean something else in other tables.
    """
    columns: dict[str, Column] = {}
    if not index.cached(has_device_times):
        is_unknown = table["device_ns" if "device_ns" in table else "self_device_ns"] == 0
        names = _OF_DEVICE.union(of_device).intersection(table.columns)
        columns |= {name: _without(table.column(name), is_unknown) for name in names}
    if not has_waits(index):
        everywhere = np.ones(len(table), np.bool_)
        names = _OF_CALLS.intersection(table.columns)
        columns |= {name: _without(table.column(name), everywhere) for name in names}
    return table.replace(columns)


def device_column(index: ProfileIndex, values: IntArray) -> OptionalColumn:
    """Return device times (int64) as a column: 0 is missing if the trace lacks them."""
    return OptionalColumn(values, (values == 0) & (not index.cached(has_device_times)))


def _without(column: Column, is_unknown: BoolArray) -> Column:
    if isinstance(column, OptionalColumn):
        return OptionalColumn(column.numbers, column.is_missing | is_unknown)
    numbers = np.asarray(column)
    if numbers.dtype.kind == "i":
        return OptionalColumn(numbers, is_unknown)
    return np.where(is_unknown, np.nan, numbers)
