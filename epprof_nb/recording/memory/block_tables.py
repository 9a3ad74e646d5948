"""Tables of the blocks and segments of memory of a recording, with the ops of the blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import (
    BLOCK_CATEGORIES,
    MEMORY_BLOCKS,
    MEMORY_SEGMENTS,
    MISSING,
    MISSING_DELTA,
)
from epprof_nb.data.table import Table, concat
from epprof_nb.host.device import HOST_DEVICE_ID
from epprof_nb.recording.memory.address_lives import UNSEEN, address_lives
from epprof_nb.recording.memory.arena_blocks import ArenaMemory, arena_tables
from epprof_nb.recording.memory.earlier_blocks import earlier_lines, places_at_end
from epprof_nb.recording.memory.torch_block_lives import (
    UNKNOWN,
    block_lives,
    segment_lives,
    state_at_begin,
)
from epprof_nb.recording.ops_by_time import OpsByTime

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.recording.memory.host_blocks import HostMemory
    from epprof_nb.recording.memory.torch_block_lives import Lives
    from epprof_nb.recording.memory.torch_history import TorchMemory

_MICROSECOND = 1000
_DRIVER, _HOST_DEVICE = "driver", "host device"
_NOTED = ("input", "parameter")
"""Categories of noted tensors; a tensor of a later one is not of an earlier one."""


def pool_tables(
    memory: Table,
    recorded: Sequence[TorchMemory | ArenaMemory],
    ops: Table,
    opened_ns: int,
    on_host: HostMemory | None = None,
    *,
    libraries: Sequence[Mapping[str, Any]] = (),
    is_cut: bool = False,
) -> dict[str, Table]:
    """Return the tables ``memory_blocks`` and ``memory_segments`` of a profile.

    Parameters
    ----------
    memory
        Records of allocations and releases, of schema `epprof_nb.data.schema.MEMORY`.
    recorded
        The memory of PyTorch and of kernels in Python, as far as it was recorded.
    ops
        The ops of the recording, with absolute times as in `memory`.
    opened_ns
        The begin of the profile on the same clock.
    on_host
        Memory of the host device; None if memory was not recorded there throughout.
    libraries
        Pools of libraries without blocks, as in ``info["memory"]["pools"]``.
    is_cut
        Whether records of `memory` may have been dropped at the end.
    """
    pools = [
        arena_tables(one, ops, opened_ns)
        if isinstance(one, ArenaMemory)
        else _torch_tables(one, ops, opened_ns)
        for one in recorded
    ]
    taken = np.concatenate([segments["address"] for _, segments in pools] or [np.empty(0)])
    is_taken = np.isin(memory["address"], taken)
    for one in recorded:
        if not isinstance(one, ArenaMemory):
            is_taken |= _is_in_expandable(memory["address"], one)
    pools += _allocation_tables(memory.take(~is_taken), opened_ns)
    if on_host is not None:
        if is_cut and len(memory):
            last_ns = int(memory["time_ns"].max()) - opened_ns
            pools[-1] = _completed(pools[-1], on_host, last_ns)
        pools[-1] = _with_older(pools[-1], on_host)
        on_host.keep_places(places_at_end(pools[-1][0], ops))
    recorded_blocks = [blocks for blocks, _ in pools]
    others = _library_blocks(libraries, recorded_blocks)
    return {
        "memory_blocks": concat([Table(MEMORY_BLOCKS), *recorded_blocks, others]),
        "memory_segments": concat([Table(MEMORY_SEGMENTS), *(held for _, held in pools)]),
    }


def _torch_tables(recorded: TorchMemory, ops: Table, opened_ns: int) -> tuple[Table, Table]:
    before = state_at_begin(recorded.after) if recorded.dropped else recorded.before
    lives = block_lives(before, recorded.after)
    held = segment_lives(recorded.before, recorded.after)
    offset = recorded.offset_ns or 0
    origin = opened_ns + offset
    by_time = None if recorded.offset_ns is None else OpsByTime(ops, recorded.marked_thread)

    def op_at(time: IntArray, thread: IntArray, *, others_allocate: bool) -> IntArray:
        op = np.full(len(time), MISSING, np.int64)
        known = np.flatnonzero(time != UNKNOWN)
        if by_time is not None and len(known):
            begin, end = within(time[known])
            op[known] = by_time.ids(begin, end, thread[known], others_allocate=others_allocate)
        return op

    def within(time: IntArray) -> tuple[IntArray, IntArray]:
        """Return the begin and the end of the microsecond of each event: the history has that."""
        begin = time // _MICROSECOND * _MICROSECOND - offset
        return begin, begin + _MICROSECOND - 1

    is_seen = lives.begin_ns != UNKNOWN
    others_allocate = by_time is not None and by_time.others_allocate(
        *within(lives.begin_ns[is_seen]), lives.begin_thread[is_seen]
    )
    is_older = lives.begin_ns == UNKNOWN
    earlier_cell, earlier_line = earlier_lines(lives.address, is_older, recorded.earlier)
    blocks = Table(
        MEMORY_BLOCKS,
        {
            "pool": _pools(lives.pool),
            "device_id": lives.device,
            "stream_id": lives.stream,
            "address": lives.address,
            "bytes": lives.nbytes,
            "requested_bytes": lives.requested,
            "allocated_ns": _since(lives.begin_ns, origin),
            "freed_ns": _since(lives.end_ns, origin),
            "op_id": op_at(lives.begin_ns, lives.begin_thread, others_allocate=others_allocate),
            "freed_op_id": op_at(lives.end_ns, lives.end_thread, others_allocate=others_allocate),
            "category": _categories(lives, recorded),
            "earlier_cell": earlier_cell,
            "earlier_line": earlier_line,
        },
    )
    recorded.keep_places(places_at_end(blocks, ops))
    return blocks, _segments(held, _since(held.begin_ns, origin), _since(held.end_ns, origin))


def _is_in_expandable(address: IntArray, recorded: TorchMemory) -> BoolArray:
    """Return the mask of the addresses within expandable segments, which PyTorch reserves for ever.

    CUPTI has a record of each piece that is mapped there.
    """
    events = recorded.after.events
    is_map = events.of("segment_map")
    begins, sizes = [events.address[is_map]], [events.nbytes[is_map]]
    for held in (recorded.before.segments, recorded.after.segments):
        begins.append(held.address[held.is_expandable])
        sizes.append(held.nbytes[held.is_expandable])
    begin, size = np.concatenate(begins), np.concatenate(sizes)
    order = np.argsort(begin)
    reach = np.maximum.accumulate((begin + size)[order])
    before = np.searchsorted(begin[order], address, side="right")
    found: BoolArray = address < np.append(reach, 0)[before - 1]
    return found & (before > 0)


def _allocation_tables(memory: Table, opened_ns: int) -> Iterator[tuple[Table, Table]]:
    """Yield the blocks and segments of memory that came directly from a device."""
    kind = memory.names("memory_kind")
    memory = memory.take(kind.equals("device") | kind.equals("managed"))
    memory = memory.take(np.argsort(memory["time_ns"], kind="stable"))
    is_begin = memory.names("operation").equals("allocation")
    start, end = address_lives(memory["address"], is_begin)
    begin = np.where(start == UNSEEN, end, start)
    time = np.append(memory["time_ns"] - opened_ns, MISSING_DELTA)
    op = np.append(memory["op_id"], MISSING)
    on_host = memory["device_id"][begin] == HOST_DEVICE_ID
    shared: dict[str, npt.NDArray[Any] | CategoryColumn] = {
        "pool": CategoryColumn(on_host.astype(np.int32), (_DRIVER, _HOST_DEVICE)),
        "device_id": memory["device_id"][begin],
        "address": memory["address"][begin],
        "bytes": memory["bytes"][begin],
        "allocated_ns": time[start],
        "freed_ns": time[end],
    }
    blocks = {
        **shared,
        "stream_id": memory["stream_id"][begin],
        "requested_bytes": memory["bytes"][begin],
        "op_id": op[start],
        "freed_op_id": op[end],
    }
    yield Table(MEMORY_BLOCKS, blocks), Table(MEMORY_SEGMENTS, shared)


def _completed(
    recorded: tuple[Table, Table], on_host: HostMemory, last_ns: int
) -> tuple[Table, Table]:
    """Add what dropped records of the host device would say, at the time of the last record.

    That is the release of arrays that are not in use at the end, and the allocation of others.
    """
    blocks, segments = recorded
    stays = blocks.names("pool").equals(_HOST_DEVICE) & (blocks["freed_ns"] == MISSING_DELTA)
    in_use = dict(zip(on_host.address.tolist(), on_host.nbytes.tolist(), strict=True))
    is_kept = [
        in_use.get(address) == nbytes
        for address, nbytes in zip(
            blocks["address"][stays].tolist(), blocks["bytes"][stays].tolist(), strict=True
        )
    ]
    ended = np.flatnonzero(stays)[~np.array(is_kept, np.bool_)]
    freed = blocks["freed_ns"].copy()
    freed[ended] = last_ns
    stays[ended] = False
    is_new = ~on_host.is_older & ~np.isin(on_host.address, blocks["address"][stays])
    address, nbytes = on_host.address[is_new], on_host.nbytes[is_new]
    shared = _of_host(address, nbytes) | {"allocated_ns": np.full(len(address), last_ns)}
    return (
        concat([blocks.replace(freed_ns=freed), _block_rows(shared)]),
        concat([segments.replace(freed_ns=freed), Table(MEMORY_SEGMENTS, shared)]),
    )


def _of_host(address: IntArray, nbytes: IntArray) -> dict[str, npt.NDArray[Any] | CategoryColumn]:
    return {
        "pool": CategoryColumn(np.zeros(len(address), np.int32), (_HOST_DEVICE,)),
        "device_id": np.full(len(address), HOST_DEVICE_ID),
        "address": address,
        "bytes": nbytes,
    }


def _block_rows(shared: dict[str, npt.NDArray[Any] | CategoryColumn]) -> Table:
    return Table(MEMORY_BLOCKS, {**shared, "requested_bytes": shared["bytes"]})


def _with_older(recorded: tuple[Table, Table], on_host: HostMemory) -> tuple[Table, Table]:
    """Add the arrays that the host device held before the profile, and their lines."""
    blocks, segments = recorded
    stays = blocks.names("pool").equals(_HOST_DEVICE) & (blocks["freed_ns"] == MISSING_DELTA)
    is_older = ~np.isin(on_host.address, blocks["address"][stays])
    shared = _of_host(on_host.address[is_older], on_host.nbytes[is_older])
    blocks = concat([blocks, _block_rows(shared)])
    is_older = blocks.names("pool").equals(_HOST_DEVICE)
    is_older &= blocks["allocated_ns"] == MISSING_DELTA
    cell, line = earlier_lines(blocks["address"], is_older, on_host.earlier)
    blocks = blocks.replace(earlier_cell=cell, earlier_line=line)
    return blocks, concat([segments, Table(MEMORY_SEGMENTS, shared)])


def _library_blocks(libraries: Sequence[Mapping[str, Any]], recorded: Sequence[Table]) -> Table:
    """Return what pools without a timeline have in use at the end, a row each.

    By as much as a pool grew, it is in the blocks of the driver, which have a time and an op.
    """
    in_driver: dict[int, int] = {}
    for blocks in recorded:
        stays = blocks.names("pool").equals(_DRIVER) & (blocks["freed_ns"] == MISSING_DELTA)
        for device in np.unique(blocks["device_id"][stays]).tolist():
            here = stays & (blocks["device_id"] == device)
            in_driver[device] = in_driver.get(device, 0) + int(blocks["bytes"][here].sum())
    names, devices, sizes = [], [], []
    for pool in libraries:
        device = pool["device_id"]
        grown = max(0, (pool["held_bytes"] or 0) - pool["held_before_bytes"])
        counted = min(grown, in_driver.get(device, 0))
        in_driver[device] = in_driver.get(device, 0) - counted
        rest = (pool["in_use_bytes"] or 0) - counted
        if rest > 0:
            names.append(pool["pool"])
            devices.append(device)
            sizes.append(rest)
    nbytes = np.array(sizes, np.int64)
    return Table(
        MEMORY_BLOCKS,
        {
            "pool": CategoryColumn.of(names),
            "device_id": np.array(devices, np.int64),
            "bytes": nbytes,
            "requested_bytes": nbytes,
        },
    )


def _categories(lives: Lives, recorded: TorchMemory) -> CategoryColumn:
    """Return the categories of the blocks in which tensors of a known kind were."""
    codes = np.full(len(lives), MISSING, np.int32)
    for name in sorted(recorded.noted, key=_NOTED.index):
        codes[_noted(lives, recorded, name)] = BLOCK_CATEGORIES.index(name)
    alive = np.flatnonzero(lives.end_ns == UNKNOWN)
    alive = alive[np.argsort(lives.address[alive])]
    begin, end = lives.address[alive], (lives.address + lives.nbytes)[alive]
    for name, addresses in recorded.kept.items():
        at = np.searchsorted(begin, addresses, side="right") - 1
        inside = (at >= 0) & (addresses < np.append(end, 0)[at])
        codes[alive[at[inside]]] = BLOCK_CATEGORIES.index(name)
    return CategoryColumn(codes, BLOCK_CATEGORIES)


def _noted(lives: Lives, recorded: TorchMemory, category: str) -> IntArray:
    """Return the rows of the blocks in which tensors were noted, each in use at that time."""
    time, address = recorded.noted[category].T
    if recorded.offset_ns is None or not len(time):
        return np.zeros(0, np.int64)
    # A block may have been allocated later in the same microsecond than its event says.
    time = time + recorded.offset_ns + _MICROSECOND
    rows = np.flatnonzero(np.isin(lives.address, address))
    rows = rows[np.lexsort((lives.begin_ns[rows], lives.address[rows]))]
    # Lives in the order of addresses, then of time: the last one that has begun.
    places, place = np.unique(lives.address[rows], return_inverse=True)
    begin = np.where(lives.begin_ns[rows] == UNKNOWN, 0, lives.begin_ns[rows])
    order = np.unique(np.concatenate([begin, time]), return_inverse=True)[1]
    span = len(order) + 1
    key = place * span + order[: len(rows)]
    is_known = np.isin(address, places)
    wanted = np.searchsorted(places, address[is_known]) * span + order[len(rows) :][is_known]
    at = np.searchsorted(key, wanted, side="right") - 1
    found, time = rows[at.clip(min=0)], time[is_known]
    is_alive = (at >= 0) & (lives.address[found] == address[is_known])
    is_alive &= (lives.end_ns[found] == UNKNOWN) | (lives.end_ns[found] >= time)
    return np.unique(found[is_alive])


def _segments(lives: Lives, begin: IntArray, end: IntArray) -> Table:
    return Table(
        MEMORY_SEGMENTS,
        {
            "pool": _pools(lives.pool),
            "device_id": lives.device,
            "address": lives.address,
            "bytes": lives.nbytes,
            "allocated_ns": begin,
            "freed_ns": end,
        },
    )


def _since(time: IntArray, origin: int) -> IntArray:
    return np.where(time == UNKNOWN, MISSING_DELTA, time - np.where(time == UNKNOWN, 0, origin))


def _pools(identity: IntArray) -> CategoryColumn:
    """Return the names of PyTorch's pools: pools of graphs and of the program have a number."""
    code = np.zeros(len(identity), np.int32)
    private = np.flatnonzero(identity.any(axis=1))  # few, and sorting all takes long
    different, order = np.unique(identity[private], axis=0, return_inverse=True)
    code[private] = 1 + order.reshape(-1)
    names = ["torch"]
    for graph, own in different.tolist():
        names.append(f"torch graph {graph}" if graph else f"torch pool {own}")
    return CategoryColumn(code, tuple(names))
