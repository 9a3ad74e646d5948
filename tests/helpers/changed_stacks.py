"""Recordings of a training loop before and after a change of its code, with Python stacks."""

from __future__ import annotations

from tests.helpers.tiny import call, kernel, line, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks

REPEATS = 12


def recording(*, changed: bool = False, repeats: int = REPEATS, moved: int = 2, cell: str = ""):
    """A recording; the changed code has a slower `mlp`, a new `dropout`, and no `log_metrics`.

    Its lines have moved, and it is in another cell. Times per repeat are 40, 20 or 32, 60 us.
    """
    at = moved if changed else 0
    cell = cell or ("In[8]" if changed else "In[5]")
    train = f"{cell}:2 In[3]:train"
    stacks = [
        (f"{train}:{3 + at} src/model.py:forward:{10 + at} lib/nn.py:linear:9", "gemm", 40_000),
        (
            f"{train}:{3 + at} src/model.py:forward:{12 + at} src/model.py:mlp:{30 + at}",
            "gelu",
            32_000 if changed else 20_000,
        ),
        (f"{train}:{4 + at} lib/autograd.py:backward:5", "backward_gemm", 60_000),
        (f"{train}:{3 + at} src/model.py:forward:{13 + at}", "dropout", 25_000)
        if changed
        else (f"{train}:{7 + at} src/log.py:log_metrics:3", "reduce", 12_000),
    ]
    rows, ids = stack_rows(*(stack for stack, *_ in stacks), f"{train}:{6 + at}")
    ops, activities, calls, bounds = [], [], [], []
    for repeat in range(repeats):
        begin = at_ns = repeat * 400_000
        ops.append(line(repeat + 1, 2, begin, begin + 400_000, cell=cell, repeat=repeat))
        for number, (_, name, typical) in enumerate(stacks):
            took = typical + 10 * (repeat % 5)
            activities.append(
                kernel(at_ns, at_ns + took, repeat + 1, name=name, stack_id=ids[number],
                       repeat=repeat, correlation_id=10 * repeat + number + 1)
            )  # fmt: skip
            at_ns += took
        calls.append(
            call(at_ns, at_ns + 1_000, op_id=repeat + 1, stack_id=ids[-1],
                 name="cuStreamSynchronize", correlation_id=10 * repeat + 9)
        )  # fmt: skip
        bounds.append([begin, begin + 400_000])
    sources = {
        cell: "%%gpuprofile\ntrain(10)\n",
        "In[3]": "\n"
        * at
        + "def train(n):\n    for x in data:\n        y = forward(x)\n        y.backward()\n"
        "        opt.step()\n        y.item()\n        log_metrics(y)\n",
        "src/model.py": "\n" * (9 + at)
        + "    x = linear(x)\n\n    x = self.mlp(x)\n    x = dropout(x)\n"
        + "\n" * 16
        + ("    return gelu(self.up(x), exact)\n" if changed else "    return gelu(self.up(x))\n"),
    }
    info = {
        "cell": cell, "wall_ns": repeats * 400_000, "repeats": bounds,
        "devices": [{"device_id": 0, "name": "Test GPU", "kind": "gpu"}],
    }  # fmt: skip
    made = profile(ops, activities, calls, info=info, sources=sources)
    return with_stacks(made, rows)
