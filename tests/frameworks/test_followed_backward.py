"""Backward passes whose nodes are read at API calls, with the host device in place of a GPU."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from types import SimpleNamespace

import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.recording.torch import backward_passes
from epprof_nb.recording.torch.autograd_engine import open_engine

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 - torch may be missing

from tests.frameworks.layers import (  # noqa: E402
    Layer,
    kernel_modules,
    kernels,
    names_of,
    profile_of_two_threads,
    work,
)
from tests.frameworks.notes import notes_of  # noqa: E402


@pytest.fixture(autouse=True)
def _followed(monkeypatch):
    open_engine()
    monkeypatch.setattr(backward_passes, "can_follow", lambda _: _native.engine_reads_nodes())


def test_the_nodes_of_this_release_can_be_read():
    open_engine()
    assert _native.engine_reads_nodes()


def test_a_node_that_is_not_as_expected_is_not_read():
    """In a separate process, because later passes depend on the result."""
    code = """if True:
        import torch
        from epprof_nb import _native
        from epprof_nb.recording.torch.autograd_engine import open_engine
        open_engine()
        leaf = torch.ones(1, requires_grad=True)
        node = ((leaf * 2) * leaf).grad_fn
        number = node._sequence_nr()
        numbers = [number - 1, 2**64 - 1]
        check = _native.engine_check_node
        for wrong in (
            (node, number + 1, numbers), (node, number, numbers[:1]), (node, number, numbers[::-1]),
            (node, number, [*numbers, 1]), (node, number, [1] * 100), (object(), number, numbers),
            (1.5, number, numbers), (leaf, number, numbers), ((1, 2, 3), number, numbers),
        ):
            assert not check(*wrong), wrong
            assert not _native.engine_reads_nodes()
            assert check(node, number, numbers) and _native.engine_reads_nodes()
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


@pytest.mark.parametrize("with_parameters", [False, True])
def test_modules_on_the_cpu_keep_their_host_time(named, values, monkeypatch, with_parameters):
    """Their nodes call no function of CUDA, so the passes get hooks."""
    monkeypatch.undo()
    monkeypatch.setattr(_native, "cupti_has_callbacks", lambda: True)
    model = nn.Sequential(nn.ReLU(), nn.Linear(4, 4) if with_parameters else nn.Tanh(), nn.ReLU())
    named(model=model)
    with epprof_nb.profile() as prof:
        loss = model(values).sum()
        assert not backward_passes.can_follow([loss])
        on_gpu = SimpleNamespace(is_cuda=True)
        assert backward_passes.can_follow([loss, on_gpu]) is not with_parameters
        loss.backward()
    assert names_of(prof, "backward") == ["model", "model.2", "model.1", "model.0"]


def test_each_pass_has_ops_of_its_own(named, values):
    layer = Layer("a")
    named(layer=layer)
    with epprof_nb.profile() as prof:
        loss = layer(values).sum()
        loss.backward(retain_graph=True)
        loss.backward()
    ops = prof.ops[prof.ops["op_type"].isin(["backward", "autograd"])]
    assert ops["name"].tolist() == ["backward", "layer"] * 2
    assert ops["parent_op_id"].tolist()[1::2] == ops.index.tolist()[::2]
    assert (prof.ops["status"] == "complete").all()
    assert prof.by_module().loc["layer", "kernels"] == 3


def test_a_graph_of_before_the_profile_is_not_linked(named, values):
    layer = Layer("a")
    named(layer=layer)
    loss = layer(values).sum()
    with epprof_nb.profile() as prof:
        layer(values)
        loss.backward()
    assert kernel_modules(prof) == {"a forward": {"layer"}, "a backward": {None}}
    (note,) = notes_of(prof)
    assert "1 of 1 node of backward passes are not linked to a module" in note


def test_threads_that_run_modules_at_once_are_linked(named, values):
    """Both threads number their nodes from the same number on."""
    prof = profile_of_two_threads(named, values)
    assert kernel_modules(prof) == {
        f"{i} {k} {way}": {f"{name}.{k}"}
        for i, name in enumerate(("first", "second"))
        for k in range(8)
        for way in ("forward", "backward")
    }
    assert notes_of(prof) == []


def test_a_backward_pass_on_another_thread_is_linked(named, values):
    layer = Layer("a")
    named(layer=layer)
    with epprof_nb.profile() as prof:
        loss = layer(values).sum()
        thread = threading.Thread(target=loss.backward)
        thread.start()
        thread.join()
    assert kernel_modules(prof) == {"a forward": {"layer"}, "a backward": {"layer"}}
    assert notes_of(prof) == []


class Shifted(nn.Module):
    """A module whose gradients reach its parameter through nodes that launch nothing."""

    def __init__(self, *shapes):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(4))
        self.shapes = shapes
        self.shift.register_post_accumulate_grad_hook(lambda _: kernels.launch("accumulated"))

    def forward(self, values):
        shift = self.shift
        for shape in self.shapes:
            shift = shift.view(shape)
        return values + shift


@pytest.mark.parametrize("shapes", [(), ((2, 2),), ((2, 2), (4, 1), (4,))])
def test_accumulated_gradients_belong_to_the_module_that_produced_them(named, shapes):
    """The node before, of another module, is the last one that launched a kernel."""
    model = nn.Sequential(Shifted(*shapes), Layer("a"))
    named(model=model)
    values = torch.ones(2, 2) if len(shapes) == 1 else torch.ones(4)
    model[1].linear = nn.Identity()
    with epprof_nb.profile() as prof:
        model(values).sum().backward()
    found = kernel_modules(prof)
    assert found["a backward"] == {"model.1"}
    assert found["accumulated"] == {"model.0"}


def test_a_gradient_whose_producer_is_not_found_belongs_to_the_pass(named):
    model = nn.Sequential(Shifted(*[(4, 1), (4,)] * 8), Layer("a"))
    model[1].linear = nn.Identity()
    named(model=model)
    with epprof_nb.profile() as prof:
        model(torch.ones(4)).sum().backward()
    assert kernel_modules(prof)["accumulated"] == {None}
    (note,) = notes_of(prof)
    assert "1 of 2 nodes" in note


class _Named(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values):
        return values * 1.0

    @staticmethod
    def backward(ctx, gradient):
        with epprof_nb.op("mine"):
            kernels.launch("inside")
        kernels.launch("outside")
        return gradient * 1.0


class Named(nn.Module):
    def forward(self, values):
        return _Named.apply(values)


def test_ops_of_a_node_are_inside_of_its_module(named, values):
    model = nn.Sequential(Named(), Layer("a"))
    named(model=model)
    with epprof_nb.profile() as prof:
        model(values).sum().backward()
    found = kernel_modules(prof)
    assert found["inside"] == found["outside"] == {"model.0"}
    ops = prof.ops
    (mine,) = ops.index[ops["name"] == "mine"]
    parent = ops.loc[ops["parent_op_id"][mine]]
    assert (parent["name"], parent["op_type"]) == ("model.0", "backward")
    assert prof.joined().set_index("name")["range_name"]["inside"] == "mine"


def test_an_op_that_spans_nodes_keeps_its_work(named, values):
    model = nn.Sequential(Layer("a"), Layer("b"))
    named(model=model)
    held = epprof_nb.op("held")
    with epprof_nb.profile() as prof:
        middle = model[0](values)
        middle.register_hook(lambda _: held.__enter__() and None)
        values.register_hook(lambda _: held.__exit__(None, None, None))
        model[1](middle).sum().backward()
    rows = prof.joined().set_index("name")
    assert rows["range_name"]["a backward"] == "held"
    assert (prof.ops["status"] == "complete").all()


def test_passes_with_and_without_hooks_in_each_other(named, values, monkeypatch):
    layer = Layer("a")
    named(layer=layer)
    passes = iter([True, False, True, False])
    monkeypatch.setattr(backward_passes, "can_follow", lambda _: next(passes))

    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values, depth):
            ctx.depth = depth
            return values * 1.0

        @staticmethod
        def backward(ctx, gradient):
            with torch.enable_grad():
                inner = layer(values.detach().requires_grad_())
                if ctx.depth:
                    inner = Nested.apply(inner, ctx.depth - 1)
                inner.sum().backward()
            kernels.launch(f"after {ctx.depth}")
            return gradient, None

    with epprof_nb.profile() as prof:
        Nested.apply(layer(values), 2).sum().backward()
        with epprof_nb.op("after"):
            pass
    found = kernel_modules(prof)
    assert found["a backward"] == {"layer"}
    assert list(passes) == []
    assert names_of(prof, "autograd") == ["backward"] * 4
    assert (prof.ops["status"] == "complete").all()
    assert prof.ops["parent_op_id"][prof.ops["name"] == "after"].isna().all()


def test_a_profile_that_ends_inside_a_pass(named, values):
    layer = Layer("a")
    named(layer=layer)
    first = epprof_nb.profile()
    prof = first.__enter__()
    result = work(layer(values), "b")
    result.register_hook(lambda _: first.__exit__(None, None, None))
    result.sum().backward()
    with epprof_nb.profile() as second:
        layer(values).sum().backward()
    assert kernel_modules(prof) == {"a forward": {"layer"}, "b forward": {None}}
    assert kernel_modules(second) == {"a forward": {"layer"}, "a backward": {"layer"}}
    assert (second.ops["status"] == "complete").all()


class _Kept:
    pass


def test_nodes_are_freed_after_the_pass(named, values):
    layer = Layer("a")
    named(layer=layer)
    references = []

    def run():
        result = layer(values)
        nodes, seen = [result.sum().grad_fn, result.grad_fn], set()
        while nodes:
            node = nodes.pop()
            if node in seen or type(node).__name__ == "AccumulateGrad":
                continue
            seen.add(node)
            kept = _Kept()  # lives as long as the node
            node.metadata["kept"] = kept
            references.append(weakref.ref(kept))
            nodes += [edge for edge, _ in node.next_functions if edge is not None]
        for node in seen:
            node.register_prehook(lambda _: kernels.launch("hook"))
        result.sum().backward()

    with epprof_nb.profile() as prof:
        for _ in range(3):
            run()
    gc.collect()
    assert (prof.activities["name"] == "hook").sum() > 6
    assert [reference() for reference in references] == [None] * len(references)
