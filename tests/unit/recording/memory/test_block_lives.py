"""Lives of blocks, compared with the statistics of PyTorch and of a model of its allocator."""

import random

import numpy as np
import pytest

from epprof_nb.recording.memory.block_lives import (
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


@pytest.mark.parametrize("seed", range(20))
def test_sizes_are_those_of_the_allocator(seed):
    choose = random.Random(seed)
    allocator = Allocator(64 << 20)
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
