"""Python stacks on a GPU: each kernel, copy and wait has the line of the user that caused it."""

import sys
import threading

import pandas as pd
import pytest

import epprof_nb
from epprof_nb.recording.stacks.availability import why_unavailable
from tests.helpers.threads import run_all

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
torch = pytest.importorskip("torch", reason="PyTorch is not installed")

pytestmark = pytest.mark.skipif(
    why_unavailable() is not None, reason=f"no Python stacks here: {why_unavailable()}"
)


def own_line(prof, stack_id):
    """Return the function and line of the innermost frame of this file, or None."""
    while not pd.isna(stack_id):
        frame = prof.stacks.iloc[int(stack_id)]
        if frame["owner"] in ("own", "cell"):
            return frame["function"], int(frame["line"])
        stack_id = frame["parent_id"]
    return None


def line_above():
    """Return the line before the one that calls this function."""
    return sys._getframe(1).f_lineno - 1


KERNELS = [
    cupy.RawKernel(f'extern "C" __global__ void {name}(float* x) {{ x[0] += 1; }}', name)
    for name in ("numbered_0", "numbered_1", "numbered_2", "numbered_3")
]


def launch_all(x, depth):
    if depth:
        return launch_all(x, depth - 1)
    lines = []
    KERNELS[0]((1,), (1,), (x,))
    lines.append(line_above())
    KERNELS[1]((1,), (1,), (x,))
    lines.append(line_above())
    for kernel in KERNELS[2:]:
        kernel((1,), (1,), (x,))
        lines.append(line_above())
    return lines


@pytest.mark.parametrize("depth", [0, 50])
def test_kernels_have_the_line_that_launched_them(depth):
    x = cupy.zeros(1, "float32")
    launch_all(x, 0)
    with epprof_nb.profile() as prof:
        for _ in range(100):
            lines = launch_all(x, depth)
    kernels = prof.activities[prof.activities["name"].str.contains("numbered_")]
    assert len(kernels) == 400
    for row in kernels.itertuples():
        number = int(row.name.partition("numbered_")[2][0])
        assert own_line(prof, row.stack_id) == ("launch_all", lines[number])
    assert set(kernels["stack_source"]) == {"exact"}


def test_threads_keep_their_lines():
    x = cupy.zeros(1, "float32")
    launch_all(x, 0)
    with epprof_nb.profile() as prof:
        found = []
        run_all(
            threading.Thread(target=lambda: found.extend(launch_all(x, 5) for _ in range(200)))
            for _ in range(8)
        )
    kernels = prof.activities[prof.activities["name"].str.contains("numbered_")]
    assert len(kernels) == 8 * 200 * 4
    lines = dict(enumerate(found[0]))
    cache = {s: own_line(prof, s) for s in kernels["stack_id"].unique()}
    wrong = [
        row.name
        for row in kernels.itertuples()
        if cache[row.stack_id] != ("launch_all", lines[int(row.name.partition("numbered_")[2][0])])
    ]
    assert not wrong


def test_a_wait_and_a_copy_have_the_line_that_asked():
    x = torch.ones(1000, device="cuda")
    x.sum().item()
    with epprof_nb.profile() as prof:
        total = x.sum()
        total.item()
        waited = line_above()
        x.cpu()
        copied = line_above()
    copies = prof.activities[prof.activities["kind"] == "memcpy"]
    function = "test_a_wait_and_a_copy_have_the_line_that_asked"
    found = [own_line(prof, stack) for stack in copies["stack_id"]]
    assert found == [(function, waited), (function, copied)]


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(32, 64)
        self.second = torch.nn.Linear(64, 64)
        self.third = torch.nn.Linear(64, 8)
        self.lines = {}

    def forward(self, x):
        x = self.first(x)
        self.lines["first"] = line_above()
        x = self.second(x.relu())
        self.lines["second"] = line_above()
        x = self.third(x.relu())
        self.lines["third"] = line_above()
        return x


def test_backward_kernels_have_the_line_of_their_forward_pass():
    model = Layers().cuda()
    x = torch.rand(16, 32, device="cuda")
    model(x).sum().backward()
    with epprof_nb.profile() as prof:
        for _ in range(5):
            model(x).sum().backward()
    acts = prof.activities[prof.activities["kind"] == "kernel"]
    main = prof.ops["thread_id"].iloc[0]
    forward, backward = acts[acts["thread_id"] == main], acts[acts["thread_id"] != main]
    assert len(forward) > 25
    assert len(backward) > 25
    assert forward["stack_id"].notna().all()
    names = prof.ops["name"]
    wrong, known = [], 0
    for row in acts.itertuples():
        layer = str(names.get(row.op_id, "")).rpartition(".")[2]
        if row.stack_source in ("exact", "near") and layer in model.lines:
            known += 1
            function, at = own_line(prof, row.stack_id)
            if at != model.lines[layer]:
                wrong.append((row.name, layer, function, at))
    assert known > 40
    assert not wrong
    assert backward["stack_source"].isin(["exact", "near"]).all()


def test_a_replay_has_the_line_that_replayed_and_the_line_that_captured():
    x = torch.zeros(16, device="cuda")
    x.add_(1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with epprof_nb.profile() as prof:
        with torch.cuda.graph(graph):
            x.add_(1)
            captured = line_above()
        graph.replay()
        replayed = line_above()
        torch.cuda.synchronize()
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    replay = kernels[kernels["stack_source"] == "replay"]
    function = "test_a_replay_has_the_line_that_replayed_and_the_line_that_captured"
    assert [own_line(prof, s) for s in replay["stack_id"]] == [(function, replayed)]
    assert [own_line(prof, s) for s in replay["capture_stack_id"]] == [(function, captured)]
