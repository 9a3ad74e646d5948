"""Paths of modules that are kept from one profile to the next."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

import epprof_nb

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 - torch may be missing

from epprof_nb.recording.torch import cached_calls, module_paths  # noqa: E402
from tests.frameworks.layers import names_of  # noqa: E402


@pytest.fixture
def walks(monkeypatch):
    """The models that were walked through since the last look."""
    found = []
    walk = module_paths._paths_below

    def counted(root, root_path):
        found.append(root_path)
        return walk(root, root_path)

    monkeypatch.setattr(module_paths, "_paths_below", counted)
    return found


@pytest.fixture
def model(named):
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 4)))
    named(model=model)
    return model


def called(model):
    with epprof_nb.profile() as prof, torch.no_grad():
        model(torch.ones(2, 4))
    return names_of(prof, "module")


PATHS = ["model", "model.0", "model.1", "model.1.0", "model.1.1"]


def test_an_unchanged_model_is_walked_through_once(model, walks):
    assert called(model) == PATHS
    walks.clear()
    assert called(model) == called(model) == PATHS
    assert walks == []


def test_a_shared_module_and_a_missing_one_are_unchanged_too(model, walks):
    model[1][0] = model[0]
    model.absent = None
    first = called(model)
    walks.clear()
    assert called(model) == first
    assert walks == []


def test_a_model_outside_of_the_namespace_is_kept(walks):
    model = nn.Sequential(nn.ReLU())
    assert called(model) == ["Sequential", "Sequential.0"]
    walks.clear()
    assert called(model) == ["Sequential", "Sequential.0"]
    assert walks == []


def test_a_kept_model_has_the_name_that_the_user_gave_it_since(named):
    model = nn.Sequential(nn.ReLU())
    called(model)
    named(later=model)
    assert called(model) == ["later", "later.0"]
    named(later=None, latest=model)
    assert called(model) == ["latest", "latest.0"]
    named(outer=nn.Sequential(model))
    assert called(model) == ["outer.0", "outer.0.0"]


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda m: m.append(nn.ReLU()), [*PATHS, "model.2"]),
        (lambda m: m.__setitem__(0, nn.Identity()), PATHS),
        (lambda m: m.pop(1), PATHS[:2]),
        (lambda m: m[1].append(m[0]), [*PATHS, "model.0"]),
        (lambda m: setattr(m[1], "__class__", type("Own", (nn.Sequential,), {})), PATHS),
        (
            lambda m: m._modules.update(last=m._modules.pop("1")),
            ["model", "model.0", "model.last", "model.last.0", "model.last.1"],
        ),
    ],
    ids=["added", "replaced", "removed", "shared", "of another class", "renamed"],
)
def test_a_changed_model_has_new_paths(change, names, model, walks):
    called(model)
    called(model)
    walks.clear()
    change(model)
    assert called(model) == names
    assert walks


class OnGpu:
    """Says that it is on a GPU, like a parameter that was moved to one."""

    is_cuda = True


def test_a_model_that_moved_to_another_device_is_walked_through_again(model, walks):
    called(model)
    walks.clear()
    moved = model[1][1]
    kept = dict(moved._parameters)
    moved._parameters.update(weight=OnGpu(), bias=None)
    with epprof_nb.profile():
        pass
    assert walks
    moved._parameters.update(kept)
    assert called(model) == PATHS


def test_models_are_not_kept_alive():
    model = nn.Sequential(nn.ReLU())
    alive = weakref.ref(model), weakref.ref(model[0])
    main = vars(sys.modules["__main__"])
    main["short_lived"] = model  # the fixture `named` would keep it
    assert called(model) == ["short_lived", "short_lived.0"]
    del main["short_lived"]
    del model
    gc.collect()
    assert [ref() for ref in alive] == [None, None]
    assert called(nn.Sequential(nn.ReLU())) == ["Sequential", "Sequential.0"]


class Odd(nn.Sequential):
    """A model whose modules cannot be asked for while `fails` is true."""

    fails = False

    def __getattribute__(self, name):
        if name == "_modules" and Odd.fails:
            raise RuntimeError("not now")
        return super().__getattribute__(name)


def test_a_model_that_cannot_be_compared_is_found_again(named, monkeypatch):
    model = Odd(nn.ReLU())
    named(model=model)
    assert called(model) == ["model", "model.0"]
    monkeypatch.setattr(Odd, "fails", True)
    with epprof_nb.profile() as prof:
        pass
    assert len(prof.ops) == 0
    monkeypatch.setattr(Odd, "fails", False)
    assert called(model) == ["model", "model.0"]


def test_ctrl_c_in_code_of_a_model_is_not_lost(model):
    paths = module_paths.ModulePaths(nn.Module, lambda: False)

    class Interrupted:
        @property
        def is_cuda(self):
            raise KeyboardInterrupt

    paths.find_models()
    paths.keep()
    model[0]._parameters["weight"] = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        paths.find_models()


def test_the_parameters_of_a_forward_pass_are_read_before_its_first_call(model, monkeypatch):
    class Own(nn.Sequential):
        def forward(self, x, past_key_values=None):
            return super().forward(x)

    model.append(Own(nn.ReLU()))
    read = []

    def counted(forward):
        if forward.__name__ == "forward":  # others may read theirs, such as Dask's
            read.append(forward)
        return signature(forward)

    signature = cached_calls.inspect.signature
    monkeypatch.setattr(cached_calls.inspect, "signature", counted)
    with epprof_nb.profile(), torch.no_grad():
        assert Own.forward in read
        read.clear()
        model(torch.ones(2, 4))
        assert read == []
    called(model)
    assert read == []


def test_a_forward_pass_that_was_replaced_has_its_new_parameters(monkeypatch):
    class Own(nn.Module):
        def forward(self, ids):
            return ids

    model, ids = Own(), torch.ones(1, 3, dtype=torch.int64)

    def phases(*args):
        with epprof_nb.profile() as prof:
            model(*args)
        return prof.by_phase()["phase"].tolist()

    assert phases(ids) == []
    cache = [(torch.zeros(1, 2, 5, 4),) * 2]
    monkeypatch.setattr(Own, "forward", lambda _, ids, past_key_values: (ids, past_key_values))
    assert phases(ids, cache) == ["prefill"]
