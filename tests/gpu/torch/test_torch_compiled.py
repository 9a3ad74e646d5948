"""Modules inside of code that torch.compile has compiled for a GPU, also in CUDA graphs."""

import pytest

import epprof_nb

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("triton", reason="Triton is not installed")
from torch import nn  # noqa: E402 - torch may be missing

from tests.gpu.oracle import device_ns  # noqa: E402


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.up, self.act, self.down = nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)

    def forward(self, values):
        return values + self.down(self.act(self.up(self.norm(values))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])

    def forward(self, values):
        for block in self.blocks:
            values = block(values)
        return values


LINEAR = [f"model.blocks.{number}.{name}" for number in (0, 1) for name in ("up", "down")]


def step(model, values):
    """A step whose gradients, which a CUDA graph keeps in its memory, are not added to others."""
    model(values).sum().backward()
    model.zero_grad()


@pytest.fixture(params=["default", "reduce-overhead"])
def profiled(named, request):
    """The second step of a compiled model, and the column with the ops of its kernels."""
    torch._dynamo.reset()
    model = Model().cuda()
    compiled = torch.compile(model, mode=request.param)
    named(model=compiled)
    values = torch.randn(32, 64, device="cuda")
    with epprof_nb.profile():  # compiled, and captured
        for _ in range(4):
            step(compiled, values)
    with epprof_nb.profile() as prof:
        step(compiled, values)
        torch.cuda.synchronize()
    yield prof, "launch" if request.param == "default" else "capture"
    torch._dynamo.reset()


def test_kernels_belong_to_modules(profiled):
    prof, attribution = profiled
    ops = prof.ops
    kernels = prof.activities[prof.activities["kind"] == "kernel"].sort_values("start_ns")
    column = "op_id" if attribution == "launch" else "capture_op_id"
    op = kernels[column].fillna(kernels["op_id"])
    names = ops["name"].reindex(op).astype(str).tolist()
    types = ops["op_type"].reindex(op).astype(str).tolist()
    of_library = [
        (name, op_type)
        for name, op_type, kernel in zip(names, types, kernels["name"], strict=True)
        if op_type in ("compiled", "backward") and not kernel.startswith("triton_")
        and name in LINEAR and "memset" not in kernel.lower()
    ]  # fmt: skip
    forward = [name for name, op_type in of_library if op_type == "compiled"]
    assert list(dict.fromkeys(forward)) == LINEAR
    backward = [name for name, op_type in of_library if op_type == "backward"]
    assert list(dict.fromkeys(backward)) == LINEAR[::-1]
    fused = [name for name, op_type in zip(names, types, strict=True) if op_type == "fused"]
    assert "model.blocks.(0 + 1.norm)" in fused


def test_each_kernel_counts_once(profiled):
    prof, attribution = profiled
    frame = prof.by_module(attribution=attribution)
    assert frame["self_device_ns"].sum() == device_ns(prof)
    model = frame.loc["model"]
    assert model["forward_ns"] > 0
    assert model["backward_ns"] > 0
    inside = frame[frame.index.str.startswith("model.")]
    # Copies by torch around a CUDA graph belong to the compiled module itself.
    assert inside["self_device_ns"].sum() + model["self_device_ns"] == model["device_ns"]
    assert model["self_device_ns"] < model["device_ns"] / 2
    assert frame[frame["type"] == "fused"]["device_ns"].sum() > 0
    if attribution == "capture":
        launched = prof.by_module()
        assert launched.loc["model", "self_device_ns"] == launched.loc["model", "device_ns"]


def test_the_tree_has_what_the_table_has(profiled):
    prof, attribution = profiled
    tree = prof.by_path(by="module", attribution=attribution)
    frame = prof.by_module(attribution=attribution)
    total = device_ns(prof)
    assert frame["self_device_ns"].sum() == total
    assert tree[tree["depth"] == 0]["device_ns"].sum() == total
