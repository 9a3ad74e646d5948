"""Optimizers, clipping, data loaders and ranges of torch as ops, and the steps of a loop."""

from __future__ import annotations

import pytest

import epprof_nb

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 - torch may be missing
from torch.nn.utils import clip_grad_norm_  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

from tests.frameworks.layers import (  # noqa: E402
    Layer,
    cpu_profiler,
    kernels,
    names_of,
    work,
)


class Sgd(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self, closure=None):
        kernels.launch("update")


def train(model, loader, optimizer):
    for batch in loader:
        work(model(batch), "loss").sum().backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_training_loop_has_steps_and_phases(named, workers):
    model = nn.Sequential(Layer("a"), nn.ReLU())
    loader = DataLoader(torch.ones(12, 4), batch_size=4, num_workers=workers)
    named(model=model)
    with epprof_nb.profile() as prof:
        train(model, loader, Sgd(model.parameters()))
    assert names_of(prof, "data") == ["waiting for data"] * 4  # the last one finds no more
    args = prof.ops["args"][prof.ops["op_type"] == "data"]
    assert [dict(value) for value in args] == [{"workers": workers}] * 4
    assert names_of(prof, "optimizer") == ["clip_grad_norm_", "Sgd.step", "Sgd.zero_grad"] * 3
    frame = prof.by_step()
    assert frame["step"].tolist() == [0, 1, 2]
    assert frame["kernels"].tolist() == [5, 5, 5]
    by_name = prof.joined().groupby(["name", "step"], observed=True)["duration_ns"].sum()
    for step in range(3):
        row = frame.iloc[step]
        assert row["forward_ns"] == by_name["a forward", step]
        assert row["backward_ns"] == by_name["a backward", step] + by_name["loss backward", step]
        assert row["optimizer_ns"] == by_name["update", step]
        assert row["other_ns"] == by_name["loss forward", step]
        assert row["data_ns"] > 0
    assert prof.by_module().loc["Sgd.step", "kernels"] == 3


def test_ranges_of_the_user_are_named_ranges():
    with epprof_nb.profile() as prof:
        with torch.profiler.record_function("mine"):
            kernels.launch("inside")

        @torch.profiler.record_function("decorated")
        def function():
            kernels.launch("in a function")

        function()
    frame = prof.joined().set_index("name")
    assert frame["range_name"].astype(str).to_dict() == {
        "inside": "mine", "in a function": "decorated",
    }  # fmt: skip
    assert set(prof.ops["category"]) == {"user"}


def test_a_range_that_outlives_its_statement_contains_what_follows():
    with epprof_nb.profile() as prof:
        region = torch.profiler.record_function("open")
        region.__enter__()
        kernels.launch("inside")
        region.__exit__(None, None, None)
        kernels.launch("outside")
    ranges = prof.joined().set_index("name")["range_name"]
    assert ranges["inside"] == "open"
    assert ranges.isna()["outside"]


def test_a_torch_profiler_inside_of_the_profile_works(named):
    model = nn.Sequential(Layer("a"))
    named(model=model)
    with epprof_nb.profile() as prof, cpu_profiler() as theirs:
        model(torch.ones(2, 4)).sum().backward()
    assert any(event.key == "aten::linear" for event in theirs.key_averages())
    assert names_of(prof, "backward") == ["model", "model.0", "model.0.linear"]


def test_record_function_is_as_before():
    before = dict(vars(torch.profiler.record_function))
    with epprof_nb.profile(), torch.profiler.record_function("mine"):
        pass
    assert dict(vars(torch.profiler.record_function)) == before
