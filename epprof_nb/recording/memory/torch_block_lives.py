"""Lives of PyTorch's blocks and segments: the events of its allocator, paired."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.stable_order import stable_order
from epprof_nb.recording.memory.torch_snapshot import ALLOCATED, Blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.recording.memory.torch_snapshot import Events, TorchSnapshot

UNKNOWN = -(2**63)
"""Time and thread of an event that is not in the history: it was before, or will be after."""

_ALIGNMENT = 512
_LARGEST_SMALL = 1 << 20
"""The unit of sizes, and the largest request that is served from small segments."""
_DIVIDED_RANGES = 16
"""Number of ranges, from 1 MiB on, in which the program may set how requests are rounded."""


@dataclass(frozen=True, slots=True)
class Lives:
    """Blocks or segments, each from its allocation to its release.

    Attributes
    ----------
    device, address, nbytes, requested, stream : int64 arrays
    pool : int64 array of shape (n, 2)
        Identity of the private pool; zeros for the common pool.
    begin_ns, end_ns : int64 arrays
        Times since the epoch, as of `Events.time_ns`; `UNKNOWN` if not in the history.
    begin_thread, end_thread : int64 arrays
        Threads of these events, as of `thread_marks`.
    """

    device: IntArray
    address: IntArray
    nbytes: IntArray
    requested: IntArray
    stream: IntArray
    pool: IntArray
    begin_ns: IntArray
    end_ns: IntArray
    begin_thread: IntArray
    end_thread: IntArray

    def __len__(self) -> int:
        return len(self.address)


def segment_lives(before: TorchSnapshot, after: TorchSnapshot) -> Lives:
    """Return the segments that the allocator held at some time of a history.

    An expandable segment has a life for each stretch of it that stays as it is: one ends where
    memory is mapped beside it, or part of it is unmapped.

    Parameters
    ----------
    before
        The snapshot with which the history began; its own events do not matter.
    after
        The snapshot at its end, with the events between the two.
    """
    held, events = before.segments, after.events
    rows = np.flatnonzero(~held.is_expandable)
    pairs = _Pairs(events, ("segment_alloc",), ("segment_free",), held.address[rows])
    mapped = np.array(list(_mapped(before, events)), np.int64).reshape(-1, 6)
    begin_row, end_row, *columns = mapped.T

    def joined(of_held: IntArray, of_events: IntArray, of_mapped: IntArray) -> IntArray:
        return np.concatenate([of_held[rows], pairs.of_begins(of_events), of_mapped])

    def of_both(values: IntArray) -> Iterator[IntArray]:
        known = np.append(values, UNKNOWN)
        for found, row in zip(pairs.of_both(values), (begin_row, end_row), strict=True):
            yield np.concatenate([found, known[row]])

    address, nbytes, device, stream = map(
        joined,
        (held.address, held.nbytes, held.device, held.stream),
        (events.address, events.nbytes, events.device, events.stream),
        columns,
    )
    return Lives(
        device,
        address,
        nbytes,
        nbytes,
        stream,
        _pools(before, after, address),
        *of_both(events.time_ns),
        *of_both(events.thread),
    )


def _mapped(before: TorchSnapshot, events: Events) -> Iterator[tuple[int, ...]]:
    """Yield the stretches of mapped memory of expandable segments.

    Each has the rows of the events with which it begins and ends, or -1, its address, bytes, device
    and stream.
    """
    held = before.segments
    # The stretches that are mapped now, in order: address, end, row of the begin, device, stream.
    now = sorted(
        (address, address + nbytes, -1, device, stream)
        for address, nbytes, device, stream in zip(
            *(column[held.is_expandable].tolist()
              for column in (held.address, held.nbytes, held.device, held.stream)),
            strict=True,
        )
    )  # fmt: skip

    def ended(stretch: tuple[int, ...], row: int) -> tuple[int, ...]:
        address, end, begin, *more = stretch
        return (begin, row, address, end - address, *more)

    is_map = events.of("segment_map")
    for row in np.flatnonzero(is_map | events.of("segment_unmap")).tolist():
        begin = int(events.address[row])
        end = begin + int(events.nbytes[row])
        # What is mapped becomes one with its neighbours.
        from_end, to_begin = (
            (bisect_left, bisect_right) if is_map[row] else (bisect_right, bisect_left)
        )
        first = from_end(now, begin, key=itemgetter(1))
        last = to_begin(now, end, key=itemgetter(0))
        touched = now[first:last]
        yield from (ended(stretch, row) for stretch in touched)
        if is_map[row]:
            begin, end = (
                min([begin, *(s[0] for s in touched)]),
                max([end, *(s[1] for s in touched)]),
            )
            left = [(begin, end, row, int(events.device[row]), int(events.stream[row]))]
        else:
            left = [
                (address, until, row, *stretch[3:])
                for stretch in touched
                for address, until in ((stretch[0], min(stretch[1], begin)),
                                       (max(stretch[0], end), stretch[1]))
                if address < until
            ]  # fmt: skip
        now[first:last] = left
    yield from (ended(stretch, -1) for stretch in now)


def block_lives(before: TorchSnapshot, after: TorchSnapshot) -> Lives:
    """Return the blocks that were in use at some time of a history.

    Their sums are PyTorch's ``allocated_bytes``: a block ends when its release is requested, even
    if a stream uses it longer. Parameters as in `segment_lives`.
    """
    rows = np.flatnonzero(before.in_use())
    known, segment = before.blocks, before.blocks.segment[rows]
    events = after.events
    pairs = _Pairs(events, ("alloc",), ("free_requested",), known.address[rows])
    address = np.concatenate([known.address[rows], pairs.of_begins(events.address)])
    begun = _sizes(before, after, pairs.begin)
    stays = np.flatnonzero(pairs.end < 0)
    begun[stays] = _sizes_at_end(after, events.address[pairs.begin[stays]], begun[stays])
    return Lives(
        np.concatenate([before.segments.device[segment], pairs.of_begins(events.device)]),
        address,
        np.concatenate([known.nbytes[rows], begun]),
        np.concatenate([known.requested[rows], pairs.of_begins(events.nbytes)]),
        np.concatenate([before.segments.stream[segment], pairs.of_begins(events.stream)]),
        _pools(before, after, address),
        *pairs.of_both(events.time_ns),
        *pairs.of_both(events.thread),
    )


def state_at_begin(after: TorchSnapshot) -> TorchSnapshot:
    """Return what a history that has dropped events says of the blocks in use at its begin.

    They are those in use at the end that it did not allocate, and those that it released without
    an allocation. The sizes of the latter are the least possible.
    """
    events, blocks = after.events, after.blocks
    seen = np.flatnonzero(events.of("alloc", "free_requested"))
    _, first = np.unique(events.address[seen], return_index=True)
    rows = seen[first]
    freed = rows[~events.of("alloc")[rows]]
    kept = np.flatnonzero(after.in_use() & ~np.isin(blocks.address, events.address[seen]))
    order = np.argsort(after.segments.address)
    at = np.searchsorted(after.segments.address[order], events.address[freed], side="right") - 1
    segment = order[at.clip(min=0)] if len(order) else np.zeros(len(freed), np.int64)
    asked = events.nbytes[freed]
    known = Blocks(
        np.concatenate([blocks.segment[kept], segment]),
        np.concatenate([blocks.address[kept], events.address[freed]]),
        np.concatenate([blocks.nbytes[kept], _rounded(asked, after.settings)]),
        np.concatenate([blocks.requested[kept], asked]),
        np.full(len(kept) + len(freed), ALLOCATED, np.int8),
    )
    return replace(after, blocks=known)


class _Pairs:
    """Events that begin a life at an address, each paired with its end.

    Addresses of all devices are different, because CUDA has one address space. Lives that began
    before the history come first: one for each address of `earlier`.
    """

    def __init__(
        self, events: Events, begins: tuple[str, ...], ends: tuple[str, ...], earlier: IntArray
    ) -> None:
        is_begin = events.of(*begins)
        rows = events.by_address
        rows = rows[(is_begin | events.of(*ends))[rows]]
        address = events.address[rows]
        is_first = np.ones(len(rows), np.bool_)
        is_first[1:] = address[1:] != address[:-1]
        ends_next = np.append(~is_first & ~is_begin[rows], False)[1:]
        next_row = np.append(rows, -1)[1:]
        begun = is_begin[rows]
        end_of = np.empty(len(events), np.int64)
        end_of[rows] = np.where(ends_next, next_row, -1)
        self.begin: IntArray = np.flatnonzero(is_begin)
        """Row of each event that begins a life, ascending."""
        self.end: IntArray = end_of[self.begin]
        """Row of the event that ends it; -1 for none."""
        of_earlier = is_first & ~begun
        order = np.searchsorted(address[of_earlier], earlier)
        order = np.minimum(order, max(0, of_earlier.sum() - 1))
        self.end_of_earlier: IntArray = np.full(len(earlier), -1, np.int64)
        if of_earlier.any():
            is_ended = address[of_earlier][order] == earlier
            self.end_of_earlier = np.where(is_ended, rows[of_earlier][order], -1)

    def of_begins(self, values: IntArray) -> IntArray:
        """Return the values of the events that begin lives."""
        return values[self.begin]

    def of_both(self, values: IntArray) -> tuple[IntArray, IntArray]:
        """Return the values of begin and end of all lives, the earlier ones first.

        Events that are not in the history have `UNKNOWN`.
        """
        known = np.append(values, UNKNOWN)
        begins = np.concatenate([np.full(len(self.end_of_earlier), UNKNOWN), values[self.begin]])
        return begins, known[np.concatenate([self.end_of_earlier, self.end])]


def _sizes(before: TorchSnapshot, after: TorchSnapshot, rows: IntArray) -> IntArray:
    """Return the sizes of the blocks that some events allocated; events have the requested bytes.

    The allocator splits a free block, except a large one of which 1 MB or less would be left. The
    free block began at the same address and ended at the next block in use, or with its segment.
    """
    events = after.events
    size = _rounded(events.nbytes[rows], after.settings)
    no_split = after.settings.get("max_split_size", -1)
    large = np.flatnonzero(size > _LARGEST_SMALL)
    if not len(large) or after.settings.get("expandable_segments"):
        return size
    at, when = events.address[rows[large]], rows[large]
    room = _Ends(before, events).after(at, when) - at
    fits = room >= size[large]
    whole = fits & (room - size[large] <= _LARGEST_SMALL)
    if no_split > 0:
        whole |= fits & (size[large] >= no_split)
    size[large] = np.where(whole, room, size[large])
    return size


def _sizes_at_end(after: TorchSnapshot, address: IntArray, otherwise: IntArray) -> IntArray:
    """Return the sizes of blocks that are in use at the end, as the snapshot has them."""
    used = after.in_use()
    order = np.argsort(after.blocks.address[used])
    known, nbytes = after.blocks.address[used][order], after.blocks.nbytes[used][order]
    at = np.searchsorted(known, address)
    is_known = np.append(known, -1)[at] == address
    return np.where(is_known, np.append(nbytes, 0)[at], otherwise)


def _rounded(requested: IntArray, settings: Mapping[str, Any]) -> IntArray:
    """Return the sizes to which the allocator rounds requests.

    It can divide the range from one power of two to the next into equal parts: the setting has
    their number for each range of 1 MiB and more, and the first is also for smaller requests.
    """
    size = np.maximum(requested, 1)
    unit = np.full(len(size), _ALIGNMENT)
    divisions = settings.get("roundup_power2_divisions")
    if divisions:
        parts_from = np.array([divisions.get(str(1 << i), 0) for i in range(_DIVIDED_RANGES)])
        exponent = np.frexp(size)[1].astype(np.int64) - 1
        parts = parts_from[(exponent - 20).clip(0, _DIVIDED_RANGES - 1)]
        is_divided = (parts > 1) & (size > _ALIGNMENT * parts)
        unit = np.where(is_divided, (1 << exponent) // np.maximum(parts, 1), unit)
    rounded: IntArray = -(-size // unit) * unit
    return rounded


class _Ends:
    """Ends of free memory at some time: at a block that is not free, or with the segment."""

    def __init__(self, before: TorchSnapshot, events: Events) -> None:
        blocks, segments = before.blocks, before.segments
        used = blocks.address[blocks.state != 0]
        lives = _Pairs(events, ("alloc",), ("free_completed",), used)
        held = _Pairs(
            events, ("segment_alloc", "segment_map"), ("segment_free", "segment_unmap"),
            segments.address,
        )  # fmt: skip
        address = np.concatenate(
            [
                used,
                lives.of_begins(events.address),
                segments.address + segments.nbytes,
                held.of_begins(events.address + events.nbytes),
            ]
        )
        earlier, earlier_held = np.full(len(used), -1), np.full(len(segments), -1)
        begin = np.concatenate([earlier, lives.begin, earlier_held, held.begin])
        end = np.concatenate([lives.end_of_earlier, lives.end, held.end_of_earlier, held.end])
        self._places, place = np.unique(address, return_inverse=True)
        # Both a block and the end of a segment can be at a place: blocks sort first.
        self._span = len(events) + 2
        kind = np.repeat([0, 1], [len(used) + len(lives.begin), len(segments) + len(held.begin)])
        self._lives = [
            self._sorted(place[kind == one], begin[kind == one], end[kind == one]) for one in (0, 1)
        ]

    def _sorted(
        self, place: IntArray, begin: IntArray, end: IntArray
    ) -> tuple[IntArray, IntArray, IntArray]:
        key = place * self._span + begin + 1
        order = np.argsort(key)
        return key[order], place[order], np.where(end < 0, self._span, end)[order]

    def after(self, address: IntArray, row: IntArray) -> IntArray:
        """Return the end of the free memory at each address, just before an event."""
        order = stable_order(address)  # neighbours are searched for at neighbouring places
        place, row = np.searchsorted(self._places, address[order], side="right"), row[order]
        is_open = place < len(self._places)
        while is_open.any():
            todo = np.flatnonzero(is_open)
            is_end = np.zeros(len(todo), np.bool_)
            for lives in self._lives:
                is_end |= self._is_alive(lives, place[todo], row[todo])
            is_open[todo] = ~is_end
            place[todo[~is_end]] += 1
            is_open &= place < len(self._places)
        found = np.empty(len(order), np.int64)
        found[order] = np.append(self._places, 0)[place]
        return found

    def _is_alive(
        self, lives: tuple[IntArray, IntArray, IntArray], place: IntArray, row: IntArray
    ) -> BoolArray:
        key, places, end = lives
        if not len(key):
            return np.zeros(len(place), np.bool_)
        at = np.searchsorted(key, place * self._span + row + 1) - 1
        found: BoolArray = (at >= 0) & (places[at] == place) & (end[at] > row)
        return found


def _pools(before: TorchSnapshot, after: TorchSnapshot, address: IntArray) -> IntArray:
    """Return the private pool of each address, by the segment of a snapshot that contains it."""
    pool = np.zeros((len(address), 2), np.int64)
    if not before.segments.pool.any() and not after.segments.pool.any():
        return pool
    for segments in (before.segments, after.segments):
        order = np.argsort(segments.address)
        at = np.searchsorted(segments.address[order], address, side="right") - 1
        if len(order):
            row = order[at]
            inside = (at >= 0) & (address < segments.address[row] + segments.nbytes[row])
            pool[inside] = segments.pool[row[inside]]
    return pool
