"""Hand-made profiles with a planted cause, and the findings of one kind."""

import gc
from itertools import pairwise
from types import FunctionType, ModuleType

import numpy as np

from epprof_nb.analysis.base.index import ProfileIndex, index_of
from epprof_nb.analysis.findings.ranking import findings
from epprof_nb.data.profile_data import ProfileData
from tests.helpers.tiny import call, kernel, line, profile

MS, US = 1_000_000, 1_000
CUDA = {"devices": [{"device_id": 0, "name": "GPU", "kind": "gpu"}]}


def info(wall, **more):
    return {"wall_ns": wall, **CUDA, **more}


def of_kind(prof, kind):
    found = [f for f in findings(index_of(prof), limit=None) if f.kind == kind]
    assert not [f for f in found if refers_to_index(f)], "a cycle: the index keeps its findings"
    return found


def refers_to_index(finding):
    """Return whether the functions of a finding refer to an index, which they would keep alive."""
    todo, seen = [finding.rows, finding.spans], set()
    while todo:
        one = todo.pop()
        if isinstance(one, ProfileIndex):
            return True
        if id(one) in seen or isinstance(one, (ModuleType, type, np.ndarray, ProfileData)):
            continue
        seen.add(id(one))
        is_function = isinstance(one, FunctionType)
        todo += (one.__closure__ or ()) if is_function else gc.get_referents(one)
    return False


def short_kernels(pitch=20 * US, length=4 * US, count=400, **more):
    """Kernels of 4 us, launched every 20 us: each starts 3 us after its call of 2 us began."""
    starts = [MS + i * pitch for i in range(count)]
    return profile(
        [line(1, 1, 0, MS), line(2, 7, MS, MS + count * pitch)],
        [kernel(t + 3 * US, t + 3 * US + length, 2, correlation_id=i, thread_id=1, **more)
         for i, t in enumerate(starts)],
        [call(t, t + 2 * US, correlation_id=i, op_id=2) for i, t in enumerate(starts)],
        info=info(MS + count * pitch),
        sources={"In[1]": "x = 1\n" * 6 + "y = model(x)\n"},
    )  # fmt: skip


def synchronising(wait=True, rounds=10, statement="total += y.item()", prepare=3 * MS):
    """Each round launches a kernel of 5 ms, waits for it, and prepares the next one.

    `prepare` is the time of each round in ns, or one for all.
    """
    ops, activities, calls = [], [], []
    starts = np.cumsum([0, *(6 * MS + np.broadcast_to(prepare, rounds))]).tolist()
    for i, (t, end) in enumerate(pairwise(starts)):
        ops += [line(10 * i + 1, 2, t, t + MS // 10), line(10 * i + 2, 3, t + MS // 10, t + 6 * MS),
                line(10 * i + 3, 4, t + 6 * MS, end)]  # fmt: skip
        activities.append(kernel(t + MS, t + 6 * MS, 10 * i + 1, correlation_id=i, thread_id=1))
        calls.append(call(t, t + MS // 10, correlation_id=i, op_id=10 * i + 1))
        if wait:
            calls.append(call(t + MS, t + 6 * MS, name="cuStreamSynchronize",
                              correlation_id=1_000 + i, op_id=10 * i + 2))  # fmt: skip
    source = f"for x in data:\n    y = f(x)\n    {statement}\n    x = load()\n"
    return profile(ops, activities, calls, info=info(starts[-1]), sources={"In[1]": source})


def repeats(walls, **more):
    ends = np.cumsum(walls)
    rows = [kernel(end - wall, end, 1, repeat=i)
            for i, (wall, end) in enumerate(zip(walls, ends.tolist(), strict=True))]  # fmt: skip
    bounds = [[int(end - wall), int(end)] for wall, end in zip(walls, ends, strict=True)]
    return profile([line(1, 1, 0, int(ends[-1]))], rows,
                   info=info(int(ends[-1]), repeats=bounds, **more))  # fmt: skip


def steady(n=20, seed=0):
    return (np.random.default_rng(seed).normal(10, 0.05, n) * MS).astype(int).tolist()
