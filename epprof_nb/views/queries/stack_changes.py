"""The difference of two sides by Python stack, for the flame graph of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.result_table import ResultTable
from epprof_nb.views.queries.icicle import MAX_NODES, MergedTree

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray

_COLUMNS = {
    "device_ns": "{}_ns", "wait_ns": "wait_{}_ns", "launches": "launches_{}", "waits": "waits_{}",
    "kernels": "kernels_{}", "count": "activities_{}",
}  # fmt: skip
_WEIGHTS = [f"{side}{name}" for side in ("", "old_") for name in ("device_ns", "launches", "waits")]


def stack_changes(table: ResultTable, *, max_nodes: int = MAX_NODES) -> dict[str, Any]:
    """Return a difference by stack as JSON columns.

    Parameters
    ----------
    table
        Result of `epprof_nb.analysis.compare.by_stack.stack_comparison`.
    max_nodes
        Maximum number of nodes; the largest of both sides are kept.

    Returns
    -------
    tree
        As a tree of stacks from `epprof_nb.views.queries.icicle.icicle`, with the sums of the old
        side as ``old_device_ns`` and so on. ``removed`` is the number of stacks that only the old
        side has, and ``removed_ns`` their device time.
    """
    names = ("parent", "depth", "level", "name", "cell", "line")
    columns = {name: table.column(name) for name in names}
    sums = {
        f"{prefix}{name}": np.nan_to_num(table[pattern.format(side)])
        for prefix, side in (("", "after"), ("old_", "before"))
        for name, pattern in _COLUMNS.items()
    }
    merged = MergedTree(ResultTable({**columns, **sums}), list(sums), _WEIGHTS, max_nodes)
    removed = _removed(table)
    return {
        **merged.places(table.names("source").take(merged.kept).to_list()),
        **merged.columns(),
        "removed": len(removed),
        "removed_ns": int(table["before_ns"][removed].sum()),
    }


def _removed(table: ResultTable) -> IntArray:
    """Return the rows of the topmost nodes with device time on the old side only."""
    is_removed = (table["before_ns"] > 0) & (table["after_ns"] == 0)
    return np.flatnonzero(is_removed & ~np.append(is_removed, False)[table["parent"]])
