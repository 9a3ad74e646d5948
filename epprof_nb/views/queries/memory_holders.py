"""Holders of memory at a time, as JSON, and at all times, as columns of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.memory.memory_at import holder_table, holders_of
from epprof_nb.analysis.memory.memory_curve import greatest
from epprof_nb.analysis.memory.memory_peak import InUse
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.util.format import shorten

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.arrays.types import IntArray

LABELS = ("pool", "device_id", "category", "module", "cell", "line", "name")
_MAX_HOLDERS = 2_000
"""Maximum number of holders that a view names; it joins the smaller ones."""
_SMALLER = "(smaller holders)"
_MAX_NAME_LENGTH = 300
_MOST_TIMES = 1 << 14


def holders_at(index: ProfileIndex, at_ns: int) -> dict[str, Any]:
    """Return the holders of the memory at a time, largest first.

    Returns
    -------
    holders
        ``at``, and a list per column of `epprof_nb.Profile.memory_at`, without the requested bytes.
    """
    table = holder_table(index, at_ns)
    rest = table.take(slice(_MAX_HOLDERS, None))
    labels = _labels(table.take(slice(_MAX_HOLDERS)), with_rest=len(rest) > 0)
    sums = {
        name: table[name][:_MAX_HOLDERS].tolist() + ([int(rest[name].sum())] if len(rest) else [])
        for name in ("bytes", "blocks")
    }
    return {"at": at_ns, **labels, **sums}


def holders_over_time(
    index: ProfileIndex, max_changes: int
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Return the memory of each holder over time, as changes.

    Parameters
    ----------
    index
        The profile.
    max_changes
        Maximum number of changes. With more, only some times are kept: those with the largest sums,
        including the peak.

    Returns
    -------
    header, columns
        ``holders`` in the header has the labels of each holder; ``exact`` is whether it has all
        times. ``holders.t`` has the times, ns, ascending; ``holders.step`` (a position in them),
        ``holders.holder``, ``holders.bytes`` and ``holders.blocks`` are the changes.
    """
    blocks, in_use = index.profile.tables["memory_blocks"], index.cached(InUse)
    rows = np.flatnonzero(in_use.end > 0)
    holder, labels = holders_of(index, rows)
    holder, labels, has_rest = _largest(holder, labels, blocks["bytes"][rows])
    begin = np.searchsorted(in_use.time, in_use.begin[rows].clip(min=0))
    end = np.searchsorted(in_use.time, in_use.end[rows])
    kept, times = np.arange(len(in_use.time)), 2 * _MOST_TIMES
    while True:
        first, last = np.searchsorted(kept, begin), np.searchsorted(kept, end)
        is_seen = first < last
        step = np.concatenate([first[is_seen], last[is_seen]])
        is_known = step < len(kept)
        codes, first_row = group_codes(step[is_known], np.tile(holder[is_seen], 2)[is_known])
        if len(first_row) <= max_changes or times <= 1:
            break
        times //= 2
        low, high = int(in_use.time[0]), int(in_use.time[-1])
        kept = np.unique(greatest(in_use.time, in_use.nbytes, low, high, times)[1])
    size, n = blocks["bytes"][rows][is_seen], len(first_row)
    sign = np.concatenate([np.ones(len(size), np.int64), np.full(len(size), -1)])[is_known]
    nbytes = sum_by_group(codes, np.tile(size, 2)[is_known] * sign, n)[:n]
    count = sum_by_group(codes, sign, n)[:n]
    order = np.argsort(step[is_known][first_row], kind="stable")
    changes = {
        "step": step[is_known][first_row],
        "holder": np.tile(holder[is_seen], 2)[is_known][first_row],
        "bytes": nbytes,
        "blocks": count,
    }
    header = {"exact": len(kept) == len(in_use.time), **_labels(labels, with_rest=has_rest)}
    columns = {f"holders.{name}": values[order] for name, values in changes.items()}
    return {"holders": header}, {"holders.t": in_use.time[kept], **columns}


def _largest(
    holder: IntArray, labels: ResultTable, size: IntArray
) -> tuple[IntArray, ResultTable, bool]:
    """Return the number of each block's holder; all smaller holders share the last number."""
    n = len(labels)
    if n <= _MAX_HOLDERS:
        return holder, labels, False
    kept = np.argsort(-sum_by_group(holder, size, n)[:n], kind="stable")[:_MAX_HOLDERS]
    number = np.full(n, _MAX_HOLDERS)
    number[kept] = np.arange(_MAX_HOLDERS)
    return number[holder], labels.take(kept), True


def _labels(table: ResultTable, *, with_rest: bool) -> dict[str, list[Any]]:
    result = {}
    for name in LABELS:
        values = table.values(name)
        if table.is_text(name):
            values = [value and shorten(value, _MAX_NAME_LENGTH) for value in values]
        rest = [_SMALLER if name == "name" else None] if with_rest else []
        result[name] = values + rest
    return result
