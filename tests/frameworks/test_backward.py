"""Work of the backward pass, by the module whose forward pass made it."""

from __future__ import annotations

import threading

import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.recording.torch import backward_passes

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 - torch may be missing
from torch.utils.checkpoint import checkpoint  # noqa: E402

from tests.frameworks.layers import (  # noqa: E402
    Layer,
    kernel_modules,
    kernels,
    names_of,
    nested,
    profile_of_two_threads,
    work,
)
from tests.frameworks.notes import notes_of  # noqa: E402


@pytest.fixture(params=["hooks", "followed", "functions"])
def each_way(request, monkeypatch):
    """Backward passes with hooks, and those that are followed at API calls, as on a GPU.

    The last way is for a release without the engine's functions.
    """
    if request.param == "followed":
        monkeypatch.setattr(backward_passes, "can_follow", lambda _: _native.engine_reads_nodes())
    if request.param == "functions":
        monkeypatch.setattr(_native, "engine_is_known", lambda: False)


class Block(nn.Module):
    """Two branches whose sum is made between its modules, as in a transformer."""

    def __init__(self, label):
        super().__init__()
        self.label = label
        self.norm = nn.LayerNorm(4)
        self.first = Layer(f"{label} first")
        self.second = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))

    def forward(self, values):
        # Two nodes that no module takes as its input or returns follow each other.
        scaled = work(values * 2, f"{self.label} scaled")
        values = values + self.first(self.norm(values))
        values = values + scaled
        return work(values + self.second(values), f"{self.label} sum")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(f"block {i}") for i in range(3))
        self.tail = Layer("tail")

    def forward(self, values):
        for block in self.blocks:
            values = block(values)
        return self.tail(self.tail(values))


@pytest.mark.usefixtures("each_way")
def test_each_kernel_belongs_to_its_module(named, values):
    net = Net()
    named(net=net)
    with epprof_nb.profile() as prof:
        loss = work(net(work(values, "input")), "loss")
        loss.sum().backward()
    expected = {"input": {None}, "loss": {None}, "tail": {"net.tail"}}
    for i in range(3):
        expected |= {
            f"block {i} scaled": {f"net.blocks.{i}"},
            f"block {i} sum": {f"net.blocks.{i}"},
            f"block {i} first": {f"net.blocks.{i}.first"},
        }
    assert kernel_modules(prof) == {
        f"{name} {way}": modules for name, modules in expected.items()
        for way in ("forward", "backward")
    }  # fmt: skip
    assert notes_of(prof) == []
    frame = prof.by_module()
    assert frame["self_device_ns"].sum() == prof.activities["duration_ns"].sum()
    kinds = prof.joined().groupby("op_type", observed=True)["duration_ns"].sum()
    assert frame.loc["net", "backward_ns"] == kinds["backward"]
    assert frame.loc["backward", "device_ns"] == kinds["autograd"]


@pytest.mark.usefixtures("each_way")
def test_sums_are_those_of_each_module_alone(named, values):
    """The number of kernels of each module, against each block run alone."""
    net = Net()
    named(net=net)
    with epprof_nb.profile() as prof:
        net(values).sum().backward()
    frame = prof.by_module()
    for i, block in enumerate(net.blocks):
        with epprof_nb.profile() as alone:
            block(values).sum().backward()
        assert frame.loc[f"net.blocks.{i}", "kernels"] == len(alone.activities) == 6
    assert frame.loc["net", "kernels"] == 3 * 6 + 4


def test_backward_ops_nest_as_the_calls_did(named, values):
    model = nn.Sequential(Layer("a"), nn.Sequential(Layer("b")))
    named(model=model)
    with epprof_nb.profile() as prof:
        model(values).sum().backward()
    ops = prof.ops[prof.ops["op_type"].isin(["backward", "autograd"])]
    parents = ops["name"].reindex(ops["parent_op_id"]).astype(object).tolist()
    assert list(zip(ops["name"], parents, strict=True))[1:] == [
        ("model", "backward"), ("model.1", "model"), ("model.1.0", "model.1"),
        ("model.1.0.linear", "model.1.0"), ("model.0", "model"), ("model.0.linear", "model.0"),
    ]  # fmt: skip


@pytest.mark.usefixtures("each_way")
def test_what_follows_a_node_without_a_number_belongs_to_its_module(named, values):
    layer = Layer("a")
    named(layer=layer)
    layer.linear.weight.register_hook(lambda gradient: kernels.launch("hook"))
    layer.linear.weight.register_post_accumulate_grad_hook(lambda _: kernels.launch("accumulated"))
    with epprof_nb.profile() as prof:
        layer(values).sum().backward()
    found = kernel_modules(prof)
    assert found["hook"] == found["accumulated"] == {"layer.linear"}


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("reentrant", [False, True])
def test_recomputation_counts_as_backward(named, values, reentrant):
    model = nn.Sequential(Layer("a"), Layer("b"))
    named(model=model)
    with epprof_nb.profile() as prof:
        checkpoint(model, values, use_reentrant=reentrant).sum().backward()
    frame = prof.by_module()
    kinds = prof.joined()
    of_a = kinds[kinds["module"] == "model.0"]
    assert sorted(of_a["name"]) == ["a backward", "a forward", "a forward"]
    assert frame.loc["model.0", ["calls", "kernels"]].tolist() == [1, 3]
    first = of_a.sort_values("start_ns")["duration_ns"].iloc[0]
    assert frame.loc["model.0", "forward_ns"] == first
    assert frame.loc["model.0", "backward_ns"] == of_a["duration_ns"].sum() - first
    assert names_of(prof, "recompute") == ["model", "model.0", "model.0.linear", "model.1",
                                           "model.1.linear"]  # fmt: skip
    assert notes_of(prof) == []


def test_backward_passes_of_a_retained_graph(named, values):
    layer = Layer("a")
    named(layer=layer)
    with epprof_nb.profile() as prof:
        loss = layer(values).sum()
        loss.backward(retain_graph=True)
        loss.backward()
    assert names_of(prof, "backward") == ["layer", "layer.linear"] * 2
    assert prof.by_module().loc["layer", "kernels"] == 3


class Plus(nn.Module):
    """A module whose nodes save no tensors, so that its graph can be used again in any case."""

    def forward(self, values):
        return values + 1


@pytest.mark.parametrize("retain", [False, True])
def test_hooks_do_not_outlive_the_backward_pass(named, values, retain):
    plus = Plus()
    named(plus=plus)
    with epprof_nb.profile() as first:
        loss = plus(values).sum()
        loss.backward(retain_graph=retain)
        loss.backward()
    with epprof_nb.profile(frameworks=[]) as second:
        loss.backward()
    assert names_of(first, "backward") == ["plus", "plus"]
    assert len(second.ops) == 0


@pytest.mark.usefixtures("each_way")
def test_the_ops_of_a_node_begin_before_its_hooks(named, values):
    layer = Layer("a")
    named(layer=layer)
    with epprof_nb.profile() as prof:
        result = layer(values)
        result.grad_fn.register_prehook(lambda _: kernels.launch("prehook"))
        result.sum().backward()
    assert kernel_modules(prof)["prehook"] == {"layer"}


@pytest.mark.usefixtures("each_way")
def test_gradients_of_gradients(named, values):
    layer = Layer("a")
    named(layer=layer)
    with epprof_nb.profile() as prof:
        loss = (layer(values) ** 2).sum()
        (gradient,) = torch.autograd.grad(loss, values, create_graph=True)
        gradient.sum().backward()
    assert names_of(prof, "autograd") == ["backward", "backward"]
    assert kernel_modules(prof)["a backward"] >= {"layer"}


def test_transforms_of_functions(named):
    layer = nn.Linear(4, 4)
    named(layer=layer)
    inputs = torch.arange(4.0)
    expected = torch.func.grad(lambda x: layer(x).square().sum())(inputs)
    with epprof_nb.profile() as prof:
        gradient = torch.func.grad(lambda x: layer(x).square().sum())(inputs)
        mapped = torch.func.vmap(layer)(torch.ones(3, 4))
    assert torch.equal(gradient, expected)
    assert mapped.shape == (3, 4)
    assert prof.by_module().loc["layer", "calls"] == 2


def test_a_graph_of_before_the_profile_is_not_linked(named, values):
    layer = Layer("a")
    named(layer=layer)
    loss = layer(values).sum()
    with epprof_nb.profile() as prof:
        layer(values)
        loss.backward()
    assert kernel_modules(prof) == {"a forward": {"layer"}, "a backward": {None}}
    (note,) = notes_of(prof)
    assert "of 4 nodes of backward passes are not linked to a module" in note
    assert prof.by_module().loc["backward", "kernels"] == 1


def test_threads_that_run_modules_at_once_are_not_linked(named, values):
    """Both threads number their nodes from the same number on."""
    prof = profile_of_two_threads(named, values)
    for kernel, found in kernel_modules(prof).items():
        model, number, way = kernel.split()
        right = f"{('first', 'second')[int(model)]}.{number}"
        assert found == {right} if way == "forward" else found <= {right, None}
    assert "several threads" in notes_of(prof)[0]


def test_a_backward_pass_on_another_thread_is_not_linked(named, values):
    layer = Layer("a")
    named(layer=layer)
    with epprof_nb.profile() as prof:
        loss = layer(values).sum()
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
    assert kernel_modules(prof)["a backward"] == {None}
    assert "not linked" in notes_of(prof)[0]


@pytest.mark.usefixtures("each_way")
def test_work_of_autograds_own_threads(named, values):
    """Backward passes nested more than 60 deep run on a pool of threads of autograd."""
    layer = Layer("a")
    named(layer=layer)
    with epprof_nb.profile() as prof:
        result, threads = nested(layer(values), layer, 70)
        result.sum().backward()
        with epprof_nb.op("after"):
            pass
    assert len(threads) > 1
    assert kernel_modules(prof) == {"a forward": {"layer"}, "a backward": {"layer"}}
    ops = prof.ops
    assert (ops["status"] == "complete").all()
    assert ops["parent_op_id"][ops["name"] == "after"].isna().all()
    assert notes_of(prof) == []


@pytest.mark.usefixtures("each_way")
def test_an_exception_in_a_backward_pass_ends_the_ops(named, values):
    layer = Layer("a")
    named(layer=layer)

    def fail(gradient):
        raise KeyError("mine")

    with epprof_nb.profile() as prof:
        result = layer(values)
        result.grad_fn.next_functions[0][0].register_prehook(fail)
        with pytest.raises(KeyError, match="mine"):
            result.sum().backward()
        with epprof_nb.op("after"):
            pass
    ops = prof.ops
    assert (ops["status"] == "complete").all()
    assert ops["parent_op_id"][ops["name"] == "after"].isna().all()


@pytest.mark.usefixtures("each_way")
def test_gradients_are_those_of_an_unprofiled_run(values):
    torch.manual_seed(0)
    net = Net()

    def gradients():
        net.zero_grad()
        net(values).square().sum().backward()
        return [parameter.grad.clone() for parameter in net.parameters()]

    plain = gradients()
    with epprof_nb.profile():
        recorded = gradients()
    assert all(torch.equal(a, b) for a, b in zip(plain, recorded, strict=True))
