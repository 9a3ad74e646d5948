"""Tensors that models and optimizers keep, where classes of users raise."""

from __future__ import annotations

import sys
import types
import warnings

import pytest

import epprof_nb

torch = pytest.importorskip("torch")

from epprof_nb.recording.memory.torch_tensors import (  # noqa: E402
    KeptTensors,
    addresses_of,
    tensors_in,
)


class Tensor(torch.Tensor):
    """A tensor that says that it is on a GPU."""

    is_cuda = True


class Failing(torch.nn.Module):
    def parameters(self, recurse=True):
        raise RuntimeError


class Optimizer(torch.optim.SGD):
    __hash__ = None

    def __eq__(self, other):
        return self is other


@pytest.fixture
def main(monkeypatch):
    """The user's namespace."""
    module = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    return vars(module)


def on_gpu(*sizes):
    return torch.zeros(*sizes).as_subclass(Tensor)


def test_one_that_raises_hides_no_other(main):
    model = torch.nn.Linear(2, 2)
    leaf = on_gpu(3).requires_grad_()
    model.register_buffer("lazy", torch.nn.parameter.UninitializedBuffer())
    model.register_buffer("weights", leaf)
    model.register_buffer("computed", leaf * 2)  # reading its gradient warns
    main.update({"failing": Failing(), "model": model})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = addresses_of(KeptTensors().tensors()["parameter"])
    assert found.tolist() == sorted(
        tensor.untyped_storage().data_ptr() for tensor in (leaf, model.computed)
    )


def test_steps_of_an_optimizer_without_hash_go_on():
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    kept = KeptTensors()
    kept.start()
    try:
        Optimizer([weight], lr=0.5).step()
    finally:
        kept.stop()
    assert weight.tolist() == [0.5, 0.5]


def test_a_state_that_contains_itself():
    tensor = on_gpu(2)
    state = {"exp_avg": tensor}
    state["all"] = [state, tensor]
    assert set(tensors_in(state, torch.Tensor)) == {tensor}


@pytest.mark.parametrize("name", ["torch", "torch.cuda"])
@pytest.mark.parametrize("detail", ["default", "memory"])
def test_stand_ins_for_torch(monkeypatch, name, detail):
    monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    with epprof_nb.profile(detail=detail) as prof, epprof_nb.op("work"):
        pass
    assert prof.ops["name"].tolist() == ["work"]
