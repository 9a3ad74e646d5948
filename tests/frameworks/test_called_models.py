"""Models of PyTorch and tensors given to them, on the CPU: a subclass says that it is on a GPU."""

import gc

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import epprof_nb  # noqa: E402
from epprof_nb.recording.memory import called_models  # noqa: E402
from epprof_nb.recording.memory.called_models import CalledModels  # noqa: E402


class OnGpu(torch.Tensor):
    is_cuda = True


def on_gpu(*shape):
    return torch.zeros(*shape).as_subclass(OnGpu)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)

    def forward(self, x, more=None):
        return self.inner(x * 2)


@pytest.fixture
def called():
    made = CalledModels()
    made.start()
    yield made
    made.stop()


def addresses(*tensors):
    return [tensor.untyped_storage().data_ptr() for tensor in tensors]


def test_inputs_are_those_of_outermost_calls(called):
    model, x, y, z = Model(), on_gpu(2, 4), on_gpu(3), on_gpu(5)
    with epprof_nb.profile(frameworks=("torch",)) as prof:
        model(x[1:], more={"a": [y, torch.zeros(2), 3], "b": (z,)})
        model(torch.zeros(2, 4))
        model(more=None, x=x)
    time, address = called.read()["input"].T
    assert sorted(address[:3].tolist()) == sorted(addresses(x, y, z))
    assert address[3:].tolist() == addresses(x)
    assert (np.diff(time) >= 0).all()
    assert (prof.ops["op_type"] == "module").sum() == 6


def test_an_exception_in_a_model_and_in_a_tensor_is_not_ours(called):
    class Broken(torch.Tensor):
        @property
        def is_cuda(self):
            raise RuntimeError("no")

    x, model = on_gpu(2, 3), Model()
    with epprof_nb.profile(frameworks=("torch",)):
        with pytest.raises(RuntimeError, match="shape"):
            model(x)
        model(torch.zeros(2, 4).as_subclass(Broken))
        model(on_gpu(2, 4))
    assert called.read()["input"][0, 1] == addresses(x)[0]
    assert len(called.read()["input"]) == 2


def test_nothing_is_noted_after_the_end(called):
    called.stop()
    with epprof_nb.profile(frameworks=("torch",)):
        Model()(on_gpu(2, 4))
    assert called.read()["input"].shape == (0, 2)


def test_the_number_of_inputs_is_bounded_also_within_a_call(called, monkeypatch):
    monkeypatch.setattr(called_models, "_MOST", 3)
    tensors, model = [on_gpu(2) for _ in range(5)], Model()
    with epprof_nb.profile(frameworks=("torch",)):
        for _ in range(2):
            model(torch.zeros(2, 4), more=tensors)
    assert called.read()["input"].shape == (3, 2)


def test_an_address_that_is_no_number_leaves_the_others(called):
    class Odd(torch.Tensor):
        is_cuda = True

        def untyped_storage(self):
            return self

        def data_ptr(self):
            return 2**64

    x = on_gpu(2)
    with epprof_nb.profile(frameworks=("torch",)):
        Model()(torch.zeros(2, 4), more=[x, torch.zeros(1).as_subclass(Odd), x])
    assert called.read()["input"][:, 1].tolist() == addresses(x, x)


def test_parameters_are_those_of_the_models_that_are_called(called):
    def trained():
        model = Model()
        weight = torch.nn.Parameter(on_gpu(4, 4))
        model.inner.weight = weight
        model.register_buffer("mean", on_gpu(7))
        for _ in range(2):
            model(torch.zeros(2, 4))
        return addresses(weight, model.mean), model.inner(torch.zeros(2, 4)), called.models()

    with epprof_nb.profile(frameworks=("torch",)):
        expected, _, models = trained()
    found = called.read()["parameter"][:, 1].tolist()
    assert found == [*expected, expected[0]]  # the inner module is also called by itself
    assert [type(model) for model in models] == [Model, torch.nn.Linear]
    del models
    gc.collect()
    assert called.models() == []  # no model is kept alive
    called.stop()
    assert len(called.read()["parameter"]) == 0


def test_a_model_without_parameters_that_can_be_read(called):
    class Failing(Model):
        def parameters(self, recurse=True):
            raise RuntimeError

    x = on_gpu(2, 4)
    with epprof_nb.profile(frameworks=("torch",)):
        Failing()(x)
    assert called.read()["input"][:, 1].tolist() == addresses(x)
    assert len(called.read()["parameter"]) == 0
