"""memory_pools: the pools of memory, and how much of each is in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.result_table import ResultTable, categorical, objects, optional
from epprof_nb.analysis.memory.memory_peak import InUse, lifetimes, moment
from epprof_nb.analysis.memory.memory_without_blocks import (
    DRIVER,
    layers,
    within_driver,
    without_timeline,
)
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn
from epprof_nb.util.format import size

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table


_MAX_SOURCES = 3


def pool_table(index: ProfileIndex, at: str | int = "end") -> ResultTable:
    """Return the columns of `Profile.memory_pools`."""
    tables = index.profile.tables
    segments, all_blocks = tables["memory_segments"], tables["memory_blocks"]
    # The rows of libraries have more than the sums of what they use.
    own = np.flatnonzero(~without_timeline(index))
    blocks = all_blocks.take(own)
    names = CategoryColumn.of([*segments.names("pool").to_list(), *blocks.names("pool").to_list()])
    device = np.concatenate([segments["device_id"], blocks["device_id"]])
    groups, first = group_codes(names.codes, device)
    n = len(first)
    of_segment, of_block = groups[: len(segments)], groups[len(segments) :]
    time = moment(index, at)
    held = np.flatnonzero(_held_at(segments, time))
    used = np.flatnonzero(index.cached(InUse).at(time)[own])
    held_bytes = sum_by_group(of_segment[held], segments["bytes"][held], n)[:n]
    used_bytes = sum_by_group(of_block[used], blocks["bytes"][used], n)[:n]
    pieces = segments.take(held), blocks.take(used)
    free, largest = _free(*pieces, of_segment[held], n)
    pool_names = names.take(first).to_list()
    notes = []
    for row, name in enumerate(pool_names):
        libraries = within_driver(index, int(device[first[row]])) if name == DRIVER else None
        sources = _sources(tables["memory"], segments.take(held[of_segment[held] == row]))
        notes.append("; ".join(filter(None, [libraries.note if libraries else "", sources])))
        if libraries:
            # What a library takes from the driver is in its own row.
            held_bytes[row] = max(0, held_bytes[row] - libraries.nbytes)
            used_bytes[row] = max(0, used_bytes[row] - libraries.nbytes)
    order = np.argsort(-held_bytes, kind="stable")
    more = layers(index)
    none = np.full(len(more), MISSING, np.int64)

    def and_more(values: IntArray, others: list[int | None]) -> IntArray:
        known = [MISSING if value is None else value for value in others]
        return np.concatenate([values[order], np.array(known, np.int64)])

    fragmentation = (1 - largest / np.maximum(free, 1)) * (free > 0)
    return ResultTable(
        {
            "pool": categorical([*(pool_names[row] for row in order), *(one.pool for one in more)]),
            "device_id": optional(and_more(device[first], [one.device_id for one in more])),
            "held_bytes": optional(and_more(held_bytes, [one.held for one in more])),
            "in_use_bytes": optional(and_more(used_bytes, [one.in_use for one in more])),
            "peak_bytes": optional(np.append(_peaks(index, own, of_block, n)[order], none)),
            "free_bytes": optional(and_more(free, [one.free for one in more])),
            "largest_free_bytes": optional(np.append(largest[order], none)),
            "fragmentation": np.append(fragmentation[order], np.full(len(more), np.nan)),
            "note": objects([*(notes[row] for row in order), *(one.note for one in more)]),
        }
    )


def _sources(memory: Table, segments: Table) -> str:
    """Return the bytes of the libraries that allocated segments, the greatest first."""
    n = len(segments)
    group, _ = group_codes(
        np.concatenate([segments["address"], memory["address"]]),
        np.concatenate([segments["allocated_ns"], memory["time_ns"]]),
    )
    row = np.full(len(group), MISSING)
    row[group[n:]] = np.arange(len(memory))
    allocation = row[group[:n]]
    is_known = allocation != MISSING
    names = memory.take(allocation[is_known]).names("library")
    libraries = len(names.categories)
    nbytes = sum_by_group(names.codes, segments["bytes"][is_known], libraries)[:libraries]
    order = np.argsort(-nbytes, kind="stable")[:_MAX_SOURCES]
    return ", ".join(f"{size(nbytes[i])} from {names.categories[i]}" for i in order if nbytes[i])


def _held_at(segments: Table, time_ns: int) -> BoolArray:
    begin, end = lifetimes(segments)
    held: BoolArray = (begin <= time_ns) & (end > time_ns)
    return held


def _free(segments: Table, blocks: Table, group: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Return the free bytes of each group of segments, and its largest free piece."""
    total, largest = np.zeros(n, np.int64), np.zeros(n, np.int64)
    if not len(segments):
        return total, largest
    order = np.argsort(segments["address"])
    address, nbytes, group = segments["address"][order], segments["bytes"][order], group[order]
    order = np.argsort(blocks["address"])
    used, size = blocks["address"][order], blocks["bytes"][order]
    segment = np.searchsorted(address, used, side="right") - 1
    inside = (segment >= 0) & (used < (address + nbytes)[segment])
    used, size, segment = used[inside], size[inside], segment[inside]
    # Free memory begins at the start of a segment and after each block, and ends at the next one.
    begin = np.concatenate([address, used + size])
    end = np.concatenate([address + nbytes, (address + nbytes)[segment]])
    of = np.concatenate([np.arange(len(address)), segment])
    following = np.searchsorted(used, begin)
    next_used = np.append(used, np.iinfo(np.int64).max)[following]
    gap = np.maximum(0, np.minimum(end, next_used) - begin)
    np.add.at(total, group[of], gap)
    np.maximum.at(largest, group[of], gap)
    return total, largest


def _peaks(index: ProfileIndex, own: IntArray, group: IntArray, n: int) -> IntArray:
    """Return the most bytes that were in use in each group of the blocks `own`."""
    blocks, in_use = index.profile.tables["memory_blocks"], index.cached(InUse)
    peaks = np.zeros(n, np.int64)
    for one in range(n):
        rows = own[group == one]
        time = np.concatenate([in_use.end[rows], in_use.begin[rows]]).clip(min=0)
        change = np.concatenate([-blocks["bytes"][rows], blocks["bytes"][rows]])
        order = np.argsort(time, kind="stable")
        peaks[one] = np.cumsum(change[order]).max(initial=0)
    return peaks
