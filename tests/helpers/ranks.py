"""Jobs with known times: ranks that compute, meet in collectives, and wait for a late rank."""

from __future__ import annotations

import numpy as np

from epprof_nb.analysis.base.result_table import ResultTable, categorical
from epprof_nb.views.job_view import JobView
from tests.helpers.tiny import kernel, line, profile

MS = 1_000_000
GPU = {"devices": [{"device_id": 0, "name": "Test GPU", "kind": "gpu"}]}


def rank_tables(
    count, steps=10, late=1, late_ms=8, step_ms=20, absent=(), hostname="node-1", command="train.py"
):
    """Return profiles, bounds and tables of a job whose rank `late` is `late_ms` late per step.

    Each step computes for 10 ms (18 ms on the late rank), then all-reduces until 2 ms after the
    last rank arrived. `absent` has processes that were not recorded: ``(rank, reason)``.
    """
    profiles, rows = {}, []
    last = (10 + late_ms) * MS
    for rank in range(count):
        work = []
        for step in range(steps):
            begin = step * max(step_ms, 12 + late_ms) * MS
            arrive = begin + (last if rank == late else 10 * MS)
            end = begin + last + 2 * MS
            work += [
                kernel(begin, arrive - MS, 2 * step + 1, name="gemm"),
                kernel(arrive, end, 2 * step + 2, name="ncclDevKernel_AllReduce_Sum_f32"),
            ]
            waited = begin + last - arrive
            rows.append((step, rank, arrive, end, waited, 2 * MS, last - 10 * MS - waited))
        wall = steps * max(step_ms, 12 + late_ms) * MS
        ops = [line(i + 1, i + 1, w["start_ns"], w["end_ns"]) for i, w in enumerate(work)]
        profiles[rank] = profile(ops, work, info={"wall_ns": wall, **GPU})
    columns = np.array(sorted(rows), np.int64).T
    names = ("collective", "rank", "arrive_ns", "end_ns", "waited_ns", "transfer_ns", "late_ns")
    collectives = ResultTable(
        dict(zip(names, columns, strict=True))
        | {
            "kind": categorical(["all-reduce"] * len(rows)),
            "bytes": np.full(len(rows), 4_000_000),
        }
    )
    numbers = [*range(count), *(rank for rank, _ in absent)]
    busy = [sum(w["end_ns"] - w["start_ns"] for w in _work(profiles[r])) for r in range(count)]
    wall = profiles[0].wall_ns
    ranks = ResultTable({
        "rank": np.array(numbers),
        "name": categorical([f"{'rank' if n < count else 'process'} {n}" for n in numbers]),
        "pid": 4000 + np.array(numbers),
        "hostname": categorical([hostname] * len(numbers)),
        "command": categorical([command] * len(numbers)),
        "state": categorical(["complete"] * count + ["not recorded"] * len(absent)),
        "reason": categorical([""] * count + [reason for _, reason in absent]),
        "busy_ns": np.array(busy + [0] * len(absent)),
        "idle_ns": np.array([wall - b for b in busy] + [0] * len(absent)),
    })  # fmt: skip
    return profiles, dict.fromkeys(range(count), (0, wall)), ranks, collectives


def job_view(count, *, window=None, **options):
    """Return a view of the job of `rank_tables`; `window` as in `JobView`."""
    profiles, bounds, ranks, collectives = rank_tables(count, **options)
    return JobView(
        profiles,
        bounds=bounds,
        ranks=ranks,
        collectives=collectives,
        stragglers=[options.get("late", 1)],
        window=window,
        sentences=["The others waited for rank 1: `augment` in train.py line 31."],
    )


def _work(prof):
    table = prof.tables["activities"]
    starts, ends = table["start_ns"].tolist(), table["end_ns"].tolist()
    return [{"start_ns": a, "end_ns": b} for a, b in zip(starts, ends, strict=True)]
