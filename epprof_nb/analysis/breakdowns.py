"""Registry of the breakdowns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.analysis.by_kernel import kernel_table
from epprof_nb.analysis.by_node import node_table, op_type_table
from epprof_nb.analysis.by_op import line_table, op_table
from epprof_nb.analysis.by_stream import stream_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.analysis.dataframe import ResultTable
    from epprof_nb.analysis.index import ProfileIndex

BREAKDOWNS: dict[str, Callable[[ProfileIndex], ResultTable]] = {
    "op": op_table,
    "op_type": op_type_table,
    "node": node_table,
    "kernel": kernel_table,
    "line": line_table,
    "stream": stream_table,
}
"""Breakdowns that are tables, by the name used in ``prof.breakdown(by=...)``, in display order."""


def breakdown(index: ProfileIndex, by: str) -> ResultTable:
    """Return one of `BREAKDOWNS`, for `ProfileIndex.cached`."""
    return BREAKDOWNS[by](index)
