"""Profiles with known contents, so that tests can check the drawing."""

from __future__ import annotations

import numpy as np

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, API_CALLS, OPS
from epprof_nb.data.table import Table
from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_profile

MS = 1_000_000
HOSTILE = "<script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">"

SOURCE = "x = load()\ny = step(x)\nz = y.get()"


def known_profile() -> Profile:
    """100 ms: three statements, a hostile range, two streams, a gap from 50 to 80 ms."""
    ops = Table(
        OPS,
        {
            "op_id": np.array([1, 2, 3, 4, 5]),
            "parent_op_id": np.array([-1, 1, 1, 3, 1]),
            "name": CategoryColumn.of(
                ["In[3]", "x = load()", "y = step(x)", HOSTILE, "z = y.get()"]
            ),
            "op_type": CategoryColumn.of(["cell", "line", "line", "range", "line"]),
            "category": CategoryColumn.of(["cell", "user", "user", "user", "user"]),
            "thread_id": np.full(5, 77),
            "start_ns": np.array([0, 1, 12, 13, 52]) * MS,
            "end_ns": np.array([100, 10, 50, 40, 99]) * MS,
            "duration_ns": np.array([100, 9, 38, 27, 47]) * MS,
            "count": np.ones(5, np.int64),
            "cell": CategoryColumn.of([None, "In[3]", "In[3]", None, "In[3]"]),
            "line": np.array([-1, 1, 2, -1, 3]),
            "status": CategoryColumn.constant("complete", 5),
        },
    )
    activities = Table(
        ACTIVITIES,
        {
            "kind": CategoryColumn.of(
                ["memcpy", "kernel", "kernel", "memset", "memcpy", "synchronization"]
            ),
            "name": CategoryColumn.of(
                ["HtoD", HOSTILE, "void at::gemm<float>(int)", "memset", "DtoH", "wait"]
            ),
            "device_id": np.zeros(6, np.int64),
            "stream_id": np.array([13, 7, 7, 7, 13, 7]),
            "start_ns": np.array([5, 20, 30, 45, 80, 60]) * MS,
            "end_ns": np.array([10, 30, 45, 50, 90, 80]) * MS,
            "duration_ns": np.array([5, 10, 15, 5, 10, 20]) * MS,
            "correlation_id": np.array([11, 12, 13, 14, 15, 16]),
            "op_id": np.array([2, 4, 4, 3, 5, 5]),
            "bytes": np.array([4_000_000, -1, -1, 256, 1000, -1]),
            "attribution": CategoryColumn.constant("stack", 6),
            "thread_id": np.full(6, 77),
        },
    )
    calls = Table(
        API_CALLS,
        {
            "name": CategoryColumn.of(["cuMemcpyHtoDAsync", "cuLaunchKernel", "cuLaunchKernel"]),
            "thread_id": np.full(3, 77),
            "start_ns": np.array([4, 14, 16]) * MS,
            "end_ns": np.array([5, 15, 18]) * MS,
            "duration_ns": np.array([1, 1, 2]) * MS,
            "correlation_id": np.array([11, 12, 13]),
            "op_id": np.array([2, 4, 4]),
        },
    )
    info = {
        "wall_ns": 100 * MS,
        "cell": "In[3]",
        "devices": [{"device_id": 0, "name": "Test <b>GPU</b>", "kind": "gpu"}],
        "recorded": {"launched": {"kernel": 2}, "shown": {"kernel": 2}, "lost": {}},
        "attribution": {"stack": 6, "cell": 0, "none": 0},
        "profiling_cost": {"ns": MS, "share": 0.01},
    }
    return Profile(
        {"ops": ops, "activities": activities, "api_calls": calls}, info, {"In[3]": SOURCE}
    )


def training_loop() -> Profile:
    """Three thousand activities of a training loop, its ops, lines and kernels."""
    return synthetic_profile(activities=3000)


_CLASS = '{"class": "Layer"}'


def modules() -> Profile:
    """A model of two layers: forward passes of 10 and 20 ms of device time, backward 20 and 30."""
    rows = [
        # op_id, parent, name, op_type, start, end, device time
        (1, -1, "model", "module", 0, 40, 0),
        (2, 1, "model.layers.0", "module", 0, 20, 10),
        (3, 1, "model.layers.1", "module", 20, 40, 20),
        (4, -1, "backward", "autograd", 50, 110, 0),
        (5, 4, "model", "backward", 50, 110, 0),
        (6, 5, "model.layers.1", "backward", 50, 80, 30),
        (7, 5, "model.layers.0", "backward", 80, 110, 20),
        (8, -1, "SGD.step", "optimizer", 110, 120, 5),
    ]
    op_id, parent, names, types, start, end, device = zip(*rows, strict=True)
    start, end, device = (np.array(times) * MS for times in (start, end, device))
    n = len(rows)
    ops = Table(
        OPS,
        {
            "op_id": np.array(op_id),
            "parent_op_id": np.array(parent),
            "name": CategoryColumn.of(names),
            "op_type": CategoryColumn.of(types),
            "category": CategoryColumn.constant("framework", n),
            "thread_id": np.full(n, 77),
            "start_ns": start,
            "end_ns": end,
            "duration_ns": end - start,
            "count": np.ones(n, np.int64),
            "status": CategoryColumn.constant("complete", n),
            "args": CategoryColumn.of([_CLASS if "layers" in name else None for name in names]),
        },
    )
    work = np.flatnonzero(device)
    activities = Table(
        ACTIVITIES,
        {
            "kind": CategoryColumn.constant("kernel", len(work)),
            "name": CategoryColumn.of([f"kernel of {names[row]}" for row in work]),
            "device_id": np.zeros(len(work), np.int64),
            "stream_id": np.full(len(work), 7),
            "start_ns": start[work],
            "end_ns": (start + device)[work],
            "duration_ns": device[work],
            "correlation_id": np.array(op_id)[work],
            "op_id": np.array(op_id)[work],
            "attribution": CategoryColumn.constant("stack", len(work)),
        },
    )
    info = {"wall_ns": 120 * MS, "class_places": {"Layer": {"file": "net/layers.py", "line": 3}}}
    source = "\n\ndef forward(self, values):\n    return self.linear(values)\n"
    return Profile({"ops": ops, "activities": activities}, info, {"net/layers.py": source})


PROFILES = {"known": known_profile, "loop": training_loop, "modules": modules}
