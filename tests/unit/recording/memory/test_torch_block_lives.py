"""Lives of blocks, compared with the statistics of PyTorch and of a model of its allocator."""

import random

import numpy as np
import pytest

from epprof_nb.recording.memory.torch_block_lives import (
    UNKNOWN,
    block_lives,
    segment_lives,
)
from epprof_nb.recording.memory.torch_snapshot import read_snapshot
from tests.helpers.torch_snapshots import (
    Allocator,
    recorded_numbers,
    recorded_snapshot,
    snapshot_before,
)


def most(lives, sizes):
    """The most bytes at once."""
    ended = lives.end_ns != UNKNOWN
    time = np.concatenate(
        [np.where(lives.begin_ns == UNKNOWN, 0, lives.begin_ns), lives.end_ns[ended]]
    )
    order = np.argsort(time, kind="stable")
    return np.cumsum(np.concatenate([sizes, -sizes[ended]])[order]).max()


def test_the_peak_of_recorded_training_steps_is_that_of_pytorch():
    after = recorded_snapshot("training")
    before, after = read_snapshot(snapshot_before(after)), read_snapshot(after)
    numbers = recorded_numbers()["after_steps"]
    lives = block_lives(before, after)
    assert most(lives, lives.nbytes) == numbers["allocated_bytes.all.peak"]
    assert most(lives, lives.requested) == numbers["requested_bytes.all.peak"]
    assert len(lives) == before.in_use().sum() + after.events.of("alloc").sum()
    held = segment_lives(before, after)
    assert held.nbytes.sum() == numbers["reserved_bytes.all.current"]
    assert (held.begin_ns != UNKNOWN).sum() == 5


@pytest.mark.parametrize("divisions", [0, 4, 16])
@pytest.mark.parametrize("seed", range(20))
def test_sizes_are_those_of_the_allocator(seed, divisions):
    choose = random.Random(seed)
    allocator = Allocator(64 << 20, divisions=divisions)
    held = [allocator.alloc(choose.randrange(1, 3 << 20)) for _ in range(5)]
    before = read_snapshot(allocator.snapshot())
    allocator.trace.clear()
    allocator.peak = allocator.allocated
    sizes = []
    for _ in range(200):
        allocator.now_us += choose.randrange(3)
        if held and (len(held) > 12 or choose.random() < 0.5):
            allocator.free(held.pop(choose.randrange(len(held))))
        else:
            held.append(allocator.alloc(choose.randrange(1, 3 << 20)))
            sizes.append(allocator.used[held[-1]][0])
    lives = block_lives(before, read_snapshot(allocator.snapshot()))
    assert lives.nbytes[lives.begin_ns != UNKNOWN].tolist() == sizes
    assert most(lives, lives.nbytes) == allocator.peak
    at_end = lives.end_ns == UNKNOWN
    assert sorted(lives.address[at_end]) == sorted(allocator.used)
    assert lives.nbytes[at_end].sum() == allocator.allocated


def test_blocks_in_use_at_the_end_have_the_size_of_the_snapshot():
    allocator = Allocator(64 << 20)
    before = read_snapshot(allocator.snapshot())
    address = allocator.alloc(1_100_000)
    allocator.used[address] = 1_310_720, 1_100_000  # by a rule of another release
    lives = block_lives(before, read_snapshot(allocator.snapshot()))
    assert lives.nbytes.tolist() == [1_310_720]


PAGE = 2 << 20


def expandable(first, count):
    return {
        "device": 1, "address": first * PAGE, "total_size": count * PAGE, "stream": 5,
        "segment_type": "large", "is_expandable": True, "blocks": [],
    }  # fmt: skip


def stretches(pages):
    """The begins and ends of runs of numbers."""
    begins = sorted(page for page in pages if page - 1 not in pages)
    ends = sorted(page + 1 for page in pages if page + 1 not in pages)
    return list(zip(begins, ends, strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_expandable_segments_are_held_as_far_as_they_are_mapped(seed):
    choose = random.Random(seed)
    pages = {*range(10, 15), *range(40, 43)}
    segments = [expandable(10, 5), expandable(40, 3)]
    fixed = expandable(90, 4) | {"is_expandable": False, "device": 0}
    trace, states = [], []
    for time in range(60):
        first, count = choose.randrange(60), choose.randrange(1, 8)
        change = set(range(first, first + count))
        is_map = not change & pages
        if not is_map and not change <= pages:
            continue
        pages = pages | change if is_map else pages - change
        states.append((1000 * time, stretches(pages)))
        trace.append({
            "action": "segment_map" if is_map else "segment_unmap", "addr": first * PAGE,
            "size": count * PAGE, "stream": 5, "time_us": time,
        })  # fmt: skip
    before = read_snapshot({"segments": [*segments, fixed], "device_traces": []})
    lives = segment_lives(before, read_snapshot({"segments": [], "device_traces": [[], trace]}))
    ended = np.where(lives.end_ns == UNKNOWN, 10**9, lives.end_ns)
    for time, expected in states:
        held = (lives.begin_ns <= time) & (ended > time)
        ends = (lives.address + lives.nbytes)[held] // PAGE
        found = sorted(zip(lives.address[held] // PAGE, ends, strict=True))
        assert found == [*expected, (90, 94)]
    assert set(lives.device.tolist()) == {0, 1}
    assert set(lives.stream.tolist()) == {5}


def test_events_in_one_microsecond_keep_their_order():
    events = read_snapshot(recorded_snapshot("training")).events
    times = events.time_ns
    assert (np.diff(times) > 0).all()
    assert (times // 1000 == events.time_us).all()


def test_a_history_without_events():
    allocator = Allocator(1 << 20)
    kept = allocator.alloc(1000)
    taken = read_snapshot(allocator.snapshot())
    taken = read_snapshot({**allocator.snapshot(), "device_traces": [[]]})
    lives = block_lives(taken, taken)
    assert lives.address.tolist() == [kept]
    assert lives.begin_ns.tolist() == lives.end_ns.tolist() == [UNKNOWN]
