"""Modules inside of code that TorchInductor has compiled, forward and backward."""

from __future__ import annotations

import json

import pytest

import epprof_nb

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 - torch may be missing

from epprof_nb.recording.torch import inductor_origins  # noqa: E402
from tests.frameworks.layers import names_of  # noqa: E402
from tests.frameworks.notes import notes_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Block(nn.Module):
    """Products only, for which TorchInductor has no C++ code to compile."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 8, bias=False), nn.Linear(8, 4, bias=False)

    def forward(self, values):
        return self.down(self.up(values))


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block(), Block()])

    def forward(self, values):
        for block in self.blocks:
            values = block(values)
        return values


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of TorchInductor that is empty."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()
    yield tmp_path
    torch._dynamo.reset()


def kernels_of(profile):
    """The innermost op of each kernel of the compiled code, in order, with the op around it."""
    ops = profile.ops[profile.ops["category"] == "framework"]
    parents = set(ops["parent_op_id"].dropna())
    inside = ops[~ops.index.isin(parents) & ops["op_type"].isin(INSIDE)]
    return [
        (name, op_type) for name, op_type in zip(inside["name"], inside["op_type"], strict=True)
    ]


INSIDE = ("compiled", "backward", "fused", "fused_backward")
FORWARD = [f"model.blocks.{n}.{name}" for n in range(3) for name in ("up", "down")]


def test_kernels_belong_to_modules_forward_and_backward(named):
    model = Stack()
    compiled = torch.compile(model)
    named(model=compiled)
    values = torch.ones(2, 4)
    compiled(values).sum().backward()  # compiled before the profile
    with epprof_nb.profile() as prof:
        compiled(values).sum().backward()
    found = kernels_of(prof)
    assert [name for name, op_type in found if op_type == "compiled"] == FORWARD
    backward = [name for name, op_type in found if op_type == "backward"]
    assert [name for name in dict.fromkeys(backward) if name in FORWARD] == FORWARD[::-1]
    frame = prof.by_module()
    assert frame.loc["model.blocks.0", ["type", "class", "calls"]].tolist() == [
        "module", "Block", 0,
    ]  # fmt: skip
    assert frame.loc["model.blocks.0", ["forward_host_ns", "backward_host_ns"]].min() > 0
    assert frame.loc["model", "calls"] == 1
    assert notes_of(prof) == []


def test_compiled_in_the_profile(named, cache):
    model = Block()
    named(model=model)
    model.compile()
    with epprof_nb.profile() as prof, torch.no_grad():
        expected = model(torch.ones(2, 4))
        again = model(torch.ones(2, 4))
    assert torch.equal(expected, again)
    assert [name for name, _ in kernels_of(prof)] == ["model.up", "model.down"] * 2
    (kept,) = cache.rglob("*.epprof.json")
    assert json.loads(kept.read_text())["kind"] == "inference"


def test_layers_share_the_code_of_one_layer(named):
    model = Stack()
    named(model=model)
    for block in model.blocks:
        block.compile()
    with epprof_nb.profile() as prof:
        model(torch.ones(2, 4, requires_grad=True)).sum().backward()
    assert len(names_of(prof, "compile")) <= 2  # one layer, and its backward pass
    found = kernels_of(prof)
    assert [name for name, op_type in found if op_type == "compiled"] == FORWARD
    backward = [name for name, op_type in found if op_type == "backward"]
    assert [name for name in dict.fromkeys(backward) if name in FORWARD] == FORWARD[::-1]


def test_a_compiled_function_and_the_models_that_it_gets(named):
    @torch.compile
    def run(model, values):
        return model(values)

    first, second = Block(), Block()
    named(first=first, second=second)
    with epprof_nb.profile() as prof, torch.no_grad():
        for model in (first, second, first):
            run(model, torch.ones(2, 4))
    names = [name for name in dict(kernels_of(prof)) if name.endswith(("up", "down"))]
    assert names == ["first.up", "first.down", "second.up", "second.down"]


def test_code_is_the_original_after_a_profile(named):
    from torch._inductor.codecache import PyCodeCache  # takes long, which most workers save

    model = torch.compile(Block())
    named(model=model)
    model(torch.ones(2, 4))
    call = PyCodeCache.modules[-1].call
    function = getattr(call, "__func__", call)
    before = function.__code__
    with epprof_nb.profile():
        assert function.__code__ is not before
    assert function.__code__ is before


def test_code_from_the_cache_on_disk(named, cache):
    from torch._dynamo.utils import counters
    from torch._inductor.codecache import PyCodeCache

    model, values = Block(), torch.ones(2, 4)
    named(model=model)

    def run_in_a_new_process():
        """Compile like a process that only has the files."""
        torch._dynamo.reset()
        PyCodeCache.cache_clear()
        inductor_origins.known.clear()
        model.compile()
        hits = counters["inductor"]["fxgraph_cache_hit"]
        with epprof_nb.profile() as prof:
            model(values).sum().backward()
        names = sorted({name for name, _ in kernels_of(prof)} & {"model.up", "model.down"})
        return counters["inductor"]["fxgraph_cache_hit"] - hits, names, notes_of(prof)

    modules = ["model.down", "model.up"]
    assert run_in_a_new_process() == (0, modules, [])
    assert run_in_a_new_process() == (2, modules, [])
    kept = list(cache.rglob("*.epprof.json"))
    for path in kept:  # as if the package had not been imported
        path.unlink()
    hits, names, (note,) = run_in_a_new_process()
    assert (len(kept), hits, names) == (2, 2, [])
    assert note.startswith("Kernels of 2 compiled graphs belong to the compiled module")


def test_models_with_equal_code_and_other_names(named):
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 8, bias=False), nn.Linear(8, 4, bias=False)

        def forward(self, values):
            return self.second(self.first(values))

    found = []
    for model in (Block(), Other(), Block()):
        named(model=model)
        torch._dynamo.reset()
        model.compile()
        with epprof_nb.profile() as prof, torch.no_grad():
            model(torch.ones(2, 4))
        found.append([name for name, _ in kernels_of(prof)])
    names = [
        ["model.up", "model.down"],
        ["model.first", "model.second"],
        ["model.up", "model.down"],
    ]
    assert found == names
