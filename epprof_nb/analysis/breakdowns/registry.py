"""Registry of the breakdowns: tables and trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.analysis.breakdowns.by_function import function_table
from epprof_nb.analysis.breakdowns.by_kernel import kernel_table
from epprof_nb.analysis.breakdowns.by_line import line_table
from epprof_nb.analysis.breakdowns.by_op import op_table
from epprof_nb.analysis.breakdowns.by_path import path_table
from epprof_nb.analysis.breakdowns.by_stream import stream_table
from epprof_nb.analysis.frameworks.by_module import module_table
from epprof_nb.analysis.frameworks.module_tree import module_tree
from epprof_nb.analysis.onnx.by_node import node_table, op_type_table
from epprof_nb.analysis.stacks.by_stack import full_stack_tree, own_stack_tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import ResultTable

BREAKDOWNS: dict[str, Callable[[ProfileIndex], ResultTable]] = {
    "op": op_table,
    "op_type": op_type_table,
    "node": node_table,
    "kernel": kernel_table,
    "line": line_table,
    "function": function_table,
    "stream": stream_table,
    "module": module_table,
}
"""Breakdowns that are tables, by the name used in ``prof.breakdown(by=...)``, in display order."""

TREES: dict[str, Callable[[ProfileIndex], ResultTable]] = {
    "tree": path_table,
    "module_tree": module_tree,
    "stack_tree": own_stack_tree,
    "full_stack_tree": full_stack_tree,
}
"""Breakdowns that are trees, likewise."""


def breakdown(index: ProfileIndex, by: str) -> ResultTable:
    """Return one of `BREAKDOWNS` or `TREES`, for `ProfileIndex.cached`."""
    return (BREAKDOWNS.get(by) or TREES[by])(index)
