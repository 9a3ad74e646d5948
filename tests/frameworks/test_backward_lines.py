"""Lines of backward launches against the tracebacks of PyTorch's anomaly detection.

The programs run on the CPU. Each operator that does not return a view counts as a launch.
"""

import collections
import json

import pytest

from epprof_nb.recording.stacks import availability
from tests.helpers import cupti_stub

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    availability.why_unavailable() is not None, reason="stacks cannot be read here"
)

CODE = r"""
import linecache, re
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from epprof_nb.data.python_stacks import SOURCES
from epprof_nb.recording.stacks.forward_stacks import ForwardStacks
from epprof_nb.recording.stacks.resolution import resolve
from epprof_nb.recording.torch import autograd_engine

autograd_engine._native = _native
autograd_engine.open_engine()
assert _native.engine_reads_nodes()
assert _native.prepare_stacks(sys.version_info.minor) is None
_native.modules_record(True)
_native.start_stacks()
start()
tracebacks = []

class Launches(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func.is_view or func is torch.ops.aten._unsafe_view.default:
            return result
        node = torch._C._current_autograd_node()
        if node is None or torch.is_grad_enabled():
            stub.stub_call(1)
            return result
        # A thread of autograd has no Python stack. Here, memory for one is missing.
        _native.set_stack_bound(0)
        stub.stub_call(1)
        _native.set_stack_bound(1 << 28)
        is_leaf = node.name() == "torch::autograd::AccumulateGrad"
        tracebacks.append(tracebacks[-1] if is_leaf else node.metadata["traceback_"])
        return result

programs = json.load(sys.stdin)
with torch.autograd.set_detect_anomaly(True, check_nan=False), Launches():
    for name, text in programs.items():
        linecache.cache[name] = len(text), None, text.splitlines(True), name
        exec(compile(text, name, "exec"), {"torch": torch})
log = [_native.drain_stacks() | _native.drain_node_stacks()]
forward = ForwardStacks(log)
resolved = resolve(log, [forward.used])
found, source = forward.of_launches(resolved.row)

def line(stack):
    frames = resolved.stacks.frames(stack)
    return next((frame.line for frame in frames if frame.file in programs), None)

def created(traceback):
    places = [re.match('  File "(.*)", line ([0-9]+)', frame) for frame in traceback]
    return [(place[1], int(place[2])) for place in places if place and place[1] in programs][-1]

launches = {name: [] for name in programs}
for stack, how, traceback in zip(found.tolist(), source.tolist(), tracebacks, strict=True):
    program, right = created(traceback)
    launches[program].append([SOURCES[how], line(stack), right])
print(json.dumps(launches))
"""

PROGRAMS = {
    "views": """
x = torch.randn(8, 8, requires_grad=True)
for _ in range(3):
    y = x * 2
    z = y[2:6]
    with torch.no_grad():
        torch.zeros(4, 8).fill_(1.0)
    w = z.exp()
    v = w.expand(3, 4, 8)
    mask = torch.ones(4, 8)
    (v * mask).sum().backward()
""",
    "loop": """
weight = torch.randn(8, 8, requires_grad=True)
state, outputs = torch.randn(4, 8), []
for _ in range(5):
    state = torch.tanh(state @ weight)
    outputs.append(state[:, :4])
torch.stack(outputs).sum().backward()
""",
    "loop with one launch": """
state, outputs = torch.randn(16, 8, requires_grad=True), []
for _ in range(5):
    state = state.sin()
    outputs.append(state[:2])
torch.cat(outputs).sum().backward()
""",
    "checkpoints": """
from torch.utils.checkpoint import checkpoint
weight = torch.randn(8, 8, requires_grad=True)
def block(x):
    y = x @ weight
    y = y.relu()
    return y * 2
x = torch.randn(4, 8, requires_grad=True)
for reentrant in (False, True):
    h = x * 1.5
    h = checkpoint(block, h, use_reentrant=reentrant)
    h.exp().sum().backward()
""",
    "attention": """
from torch import nn
from torch.nn import functional as F
class Block(nn.Module):
    def __init__(self, size=32):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.query_key_value = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)
    def forward(self, x):
        batch, time, size = x.shape
        q, k, v = (
            part.view(batch, time, 4, -1).transpose(1, 2)
            for part in self.query_key_value(self.norm(x)).split(size, dim=2)
        )
        scores = (q @ k.transpose(-2, -1)) * 0.3
        mask = torch.tril(torch.ones(time, time))
        weights = F.softmax(scores.masked_fill(mask == 0, float("-inf")), dim=-1)
        y = (weights @ v).transpose(1, 2).contiguous()
        return x + self.out(y.view(batch, time, size))
model = nn.Sequential(nn.Embedding(50, 32), Block(), Block(), nn.Linear(32, 50))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    tokens = torch.randint(0, 50, (2, 16))
    loss = F.cross_entropy(model(tokens).view(-1, 50), tokens.view(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}
NEAR = {
    "views": 0.5,
    "loop": 0.4,
    "loop with one launch": 0.5,
    "checkpoints": 0.2,
    "attention": 0.2,
}
"""Largest share of the launches whose lines may be near the right one."""


@pytest.fixture(scope="module")
def launches(tmp_path_factory):
    """The launches of each program: how a line was found, the line, and the right one."""
    library = cupti_stub.build(tmp_path_factory.mktemp("cupti"))
    return json.loads(cupti_stub.run(library, CODE, json.dumps(PROGRAMS)).splitlines()[-1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_exact_lines_are_those_that_created_the_node(launches, name):
    found = launches[name]
    wrong = [(line, right) for how, line, right in found if how == "exact" and line != right]
    assert wrong == []
    sources = collections.Counter(how for how, *_ in found)
    assert sources.keys() <= {"exact", "near"}
    assert sources["near"] <= NEAR[name] * len(found)
