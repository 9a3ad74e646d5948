"""Operators of torch and autograd nodes as ops."""

from __future__ import annotations

import pandas as pd
import pytest

import epprof_nb

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 - torch may be missing

from tests.frameworks.layers import (  # noqa: E402
    Layer,
    cpu_profiler,
    kernel_modules,
    kernels,
    work,
)
from tests.frameworks.notes import notes_of  # noqa: E402
from tests.frameworks.operators import operators  # noqa: E402


@pytest.fixture
def library():
    """A library with an operator whose kernel runs on the host device."""
    with torch.library._scoped_library("epprof_test", "DEF") as made:
        made.define("double(Tensor x) -> Tensor")

        def double(x):
            kernels.launch("double")
            return x * 2

        made.impl("double", double, "CPU")
        yield torch.ops.epprof_test


def test_operators_are_ops_with_shapes_below_their_module(named, values):
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU())
    named(model=model)
    with epprof_nb.profile(detail="shapes") as prof:
        model(values)
    found = operators(prof)
    assert ("aten::linear", "operator", "[2,4], [8,4], [8]", "model.0") in found
    assert ("aten::addmm", "operator", "[8], [2,4], [4,8], [], []", "aten::linear") in found
    assert ("aten::gelu", "operator", "[2,8], []", "model.1") in found
    assert notes_of(prof) == []
    rows = prof.ops[prof.ops["category"] == "operator"]
    assert set(rows["source"]) == {"torch"}
    assert (rows["suspended_ns"] == 0).all()
    assert (rows["end_ns"] - rows["start_ns"] == rows["duration_ns"]).all()


def test_operators_have_shapes_only_on_request(named, values):
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU())
    named(model=model)
    model(values).sum().backward()  # the first pass accumulates no gradients
    found = []
    for detail in ("operators", "shapes", "api,operators,shapes"):
        with epprof_nb.profile(detail=detail) as prof:
            model(values).sum().backward()
        found.append(prof.ops[prof.ops["category"] == "operator"])
    assert len(found[0]) > 10
    assert found[0]["input_shapes"].isna().all()
    assert found[0]["sequence_number"].notna().sum() > 5
    for rows in found[1:]:
        assert rows["name"].tolist() == found[0]["name"].tolist()
        assert rows["input_shapes"].notna().sum() > 5


def test_a_nested_profile_adds_shapes(values):
    with epprof_nb.profile(detail="operators") as prof:
        torch.exp(values)
        with epprof_nb.profile(detail="shapes"):
            torch.sin(values)
        torch.cos(values)
    shapes = {name: sizes for name, _, sizes, _ in operators(prof)}
    assert list(shapes) == ["aten::exp", "aten::sin", "aten::cos"]
    assert pd.isna(shapes["aten::exp"])
    assert (shapes["aten::sin"], shapes["aten::cos"]) == ("[2,4]", "[2,4]")
    assert notes_of(prof) == []
    with epprof_nb.profile(detail="operators") as after:
        torch.exp(values)
    assert pd.isna(operators(after)[0][2])


def test_several_devices_have_operators_without_shapes(values, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with epprof_nb.profile(detail="operators") as plain:
        torch.exp(values)
    with epprof_nb.profile(detail="shapes") as prof:
        torch.exp(values)
    assert operators(plain) == operators(prof)
    assert notes_of(plain) == []
    assert "several devices" in notes_of(prof)[0]


def test_operators_are_those_of_torchs_own_profiler(named, values):
    net = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    named(net=net)

    def step():
        net(values[None]).square().mean().backward()

    step()
    with cpu_profiler(record_shapes=True) as theirs:
        step()
    with epprof_nb.profile(detail="operators") as ours:
        step()
    expected = [
        (event.name(), event.sequence_nr() if event.sequence_nr() >= 0 else None)
        for event in sorted(theirs.profiler.kineto_results.events(), key=lambda e: e.start_ns())
        if not event.name().startswith("autograd::engine::evaluate_function: ")
    ]
    rows = ours.ops[ours.ops["category"] == "operator"]
    numbers = [None if value is pd.NA else value for value in rows["sequence_number"]]
    found = list(zip(rows["name"], numbers, strict=True))
    assert [name for name, _ in found] == [name for name, _ in expected]
    # Each step has the next numbers.
    first, their_first = (
        min(number for _, number in pairs if number) for pairs in (found, expected)
    )
    assert [number and number - first for _, number in found] == [
        number and number - their_first for _, number in expected
    ]


def test_the_backward_pass_has_the_numbers_of_the_forward_pass(named, values):
    layer = nn.Linear(4, 4)
    named(layer=layer)
    with epprof_nb.profile(detail="operators") as prof:
        layer(values).exp().sum().backward()
    ops = prof.ops
    nodes = ops[ops["op_type"] == "autograd_node"].set_index("name")["sequence_number"]
    forward = ops[ops["op_type"] == "operator"].groupby("name", observed=True)["sequence_number"]
    for node, operator in (
        ("AddmmBackward0", "aten::addmm"), ("ExpBackward0", "aten::exp"),
        ("SumBackward0", "aten::sum"),
    ):  # fmt: skip
        assert nodes[node] == forward.first()[operator]
    assert nodes["torch::autograd::AccumulateGrad"].isna().all()
    frame = prof.by_operator().set_index("name")
    host = frame["backward_host_ns"]
    for node, operator in (
        ("AddmmBackward0", "aten::addmm"), ("ExpBackward0", "aten::exp"),
        ("SumBackward0", "aten::sum"),
    ):  # fmt: skip
        assert host[operator] == frame.loc[node, "host_ns"] > 0
    assert host["aten::linear"] >= host["aten::addmm"]
    modules = prof.by_operator(modules=True).set_index("name")["module"]
    assert modules["aten::addmm"] == modules["AddmmBackward0"] == "layer"


def test_sums_are_those_of_a_profile_without_operators(named, values, library):
    """Kernels belong to operators, and so to the same modules and lines."""
    model = nn.Sequential(Layer("a"), nn.Sequential(nn.ReLU(), Layer("b")))
    named(model=model)

    def run(detail):
        with epprof_nb.profile(detail=detail) as prof, epprof_nb.op("step"):
            loss = work(model(values), "loss")
            library.double(loss.detach())
            loss.sum().backward()
        return prof

    plain, detailed = run("default"), run("operators")
    assert kernel_modules(detailed) == kernel_modules(plain)
    columns = ["type", "calls", "kernels"]
    frame = detailed.by_module()
    assert frame[columns].sort_index().equals(plain.by_module()[columns].sort_index())
    assert frame["self_device_ns"].sum() == detailed.activities["duration_ns"].sum()
    by_op = detailed.by_op().set_index("name")
    assert by_op.loc["epprof_test::double", ["op_type", "kernels"]].tolist() == ["operator", 1]
    assert by_op["self_device_ns"].sum() == detailed.activities["duration_ns"].sum()
    joined = detailed.joined().set_index("name")
    assert joined.loc["double", ["op_name", "op_category", "range_name"]].tolist() == [
        "epprof_test::double", "operator", "step",
    ]  # fmt: skip
    assert joined.loc["a backward", ["op_name", "op_type", "module"]].tolist() == [
        "_WorkBackward", "autograd_node", "model.0",
    ]  # fmt: skip
    phases = ["forward_ns", "backward_ns"]
    kinds = detailed.joined().groupby("name", observed=True)["duration_ns"].sum()
    assert frame.loc["model", phases].tolist() == [
        kinds["a forward"] + kinds["b forward"], kinds["a backward"] + kinds["b backward"],
    ]  # fmt: skip


def test_results_are_those_of_an_unprofiled_run(values):
    torch.manual_seed(0)
    net = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5, batch_first=True)

    def gradients():
        torch.manual_seed(1)
        net.zero_grad()
        net(values[None]).square().sum().backward()
        return [parameter.grad.clone() for parameter in net.parameters()]

    plain = gradients()
    with epprof_nb.profile(detail="operators"):
        recorded = gradients()
    assert all(torch.equal(a, b) for a, b in zip(plain, recorded, strict=True))
    assert not torch.autograd._profiler_enabled()


def test_all_does_not_record_operators(values):
    with epprof_nb.profile(detail="all") as prof:
        torch.exp(values)
    assert operators(prof) == []


def test_a_nested_profile_adds_operators(values):
    with epprof_nb.profile() as outer:
        torch.exp(values)
        with epprof_nb.profile(detail="operators") as inner:
            torch.sin(values)
    assert [row[0] for row in operators(inner)] == ["aten::sin"]
    assert [row[0] for row in operators(outer)] == ["aten::sin"]


def test_torch_may_be_left_out(values):
    with epprof_nb.profile(detail="operators", frameworks=["nvtx"]) as prof:
        torch.exp(values)
    assert operators(prof) == []
    assert notes_of(prof) == [
        "Operators are not recorded, because the option frameworks has no torch."
    ]


def test_an_exception_in_an_operator_ends_it(values):
    with epprof_nb.profile(detail="operators") as prof:
        with pytest.raises(RuntimeError):
            torch.ones(2, 3) @ torch.ones(2, 3)
        with epprof_nb.op("after"):
            pass
    ops = prof.ops
    assert "aten::mm" in set(ops["name"])
    assert (ops["status"] == "complete").all()
    assert ops["parent_op_id"][ops["name"] == "after"].isna().all()
