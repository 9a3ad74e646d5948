"""Time from a snapshot of a long history of PyTorch's allocator to ``prof.memory_at()``.

The history repeats one that an H200 recorded. It needs no GPU; PyTorch's own ``_snapshot()`` took
0.49 us per event there.

    python -m tests.benchmarks.memory.memory_at [--events 1e6] [--rounds 5]
"""

from __future__ import annotations

import argparse
import gc
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MEMORY, OPS
from epprof_nb.data.table import Table
from epprof_nb.profiles import Profile
from epprof_nb.recording.memory.block_tables import pool_tables
from epprof_nb.recording.memory.torch_history import TorchMemory
from epprof_nb.recording.memory.torch_snapshot import read_snapshot
from tests.helpers.torch_snapshots import recorded_snapshot, snapshot_before

if TYPE_CHECKING:
    from collections.abc import Sequence

_ACTIONS = ("alloc", "free_requested", "free_completed")


def long_snapshot(events: int) -> tuple[dict[str, Any], int, int]:
    """Return a snapshot with that many events, and its first and last microsecond."""
    after = recorded_snapshot("training")
    (trace,) = after["device_traces"]
    rows = [row for row in trace if row["action"] in _ACTIONS]
    first = rows[0]["time_us"]
    span = rows[-1]["time_us"] - first + 10
    repeats = -(-events // len(rows))
    repeated = [
        {**row, "time_us": row["time_us"] + i * span} for i in range(repeats) for row in rows
    ]
    segments = [{**row, "time_us": first - 1} for row in trace if row["action"] == "segment_alloc"]
    long = {"segments": after["segments"], "device_traces": [segments + repeated[:events]]}
    return long, first, first + repeats * span


def ops_between(first_ns: int, last_ns: int, n: int) -> Table:
    """Return one op with `n` modules in it, one after the other."""
    start = np.linspace(first_ns, last_ns, n + 1).astype(np.int64)
    return Table(
        OPS,
        {
            "op_id": np.arange(1, n + 2),
            "parent_op_id": np.append(-1, np.ones(n, np.int64)),
            "start_ns": np.append(first_ns - 10, start[:-1]),
            "end_ns": np.append(last_ns + 10, start[1:]),
            "count": np.ones(n + 1, np.int64),
            "name": CategoryColumn(np.arange(n + 1, dtype=np.int32) % 50, [*map(str, range(50))]),
            "op_type": CategoryColumn(np.minimum(np.arange(n + 1), 1), ("cell", "module")),
            "status": CategoryColumn(np.zeros(n + 1, np.int32), ("complete",)),
        },
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the median milliseconds of each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=lambda text: int(float(text)), default=10**6)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args(arguments)
    raw, first, last = long_snapshot(args.events)
    begin_ns = first * 1000
    ops = ops_between(begin_ns, last * 1000, args.events // 3)
    since = ops.replace(start_ns=ops["start_ns"] - begin_ns, end_ns=ops["end_ns"] - begin_ns)
    before = read_snapshot(snapshot_before(recorded_snapshot("training")))
    gc.freeze()
    laps: dict[str, list[float]] = {"columns": [], "blocks": [], "memory_at()": []}
    for _ in range(args.rounds):
        times = [time.perf_counter()]
        memory = TorchMemory(before, read_snapshot(raw), 0, 0)
        times.append(time.perf_counter())
        tables = pool_tables(Table(MEMORY), [memory], ops, begin_ns)
        times.append(time.perf_counter())
        info = {"wall_ns": (last - first) * 1000, "notes": []}
        holders = Profile({**tables, "ops": since}, info, {}).memory_at()
        times.append(time.perf_counter())
        for lap, seconds in zip(laps.values(), np.diff(times).tolist(), strict=True):
            lap.append(seconds)
    print(
        f"{args.events:,} events, {len(tables['memory_blocks']):,} blocks, {len(holders)} holders"
    )
    for name, seconds in laps.items():
        print(f"  {name:<12} {np.median(seconds) * 1e3:7.1f} ms")
    print(f"  {'sum':<12} {sum(map(np.median, laps.values())) * 1e3:7.1f} ms")


if __name__ == "__main__":
    main()
