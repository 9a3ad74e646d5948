"""Calls of models whose arguments, results and modes are unusual: they go as without a profile."""

from __future__ import annotations

import gc
import sys
import warnings
import weakref

import pytest

import epprof_nb

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 - torch may be missing
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from epprof_nb.recording.torch import kv_caches  # noqa: E402

IDS, POSITIONS = torch.ones(1, 4, dtype=torch.long), torch.arange(4)[None]


class Model(nn.Module):
    def forward(self, ids, cache=None, position_ids=None):
        return ids + 1


class NoHash(type):
    __hash__ = None

    def __eq__(cls, other):
        return cls is other


class ModuleMeta(NoHash, type(nn.Module)):
    pass


def layers():
    return [(torch.ones(1, 2, 4, 8), torch.ones(1, 2, 4, 8))]


def test_classes_without_hash():
    kind = ModuleMeta("Odd", (Model,), {})
    argument = NoHash("Argument", (), {})()
    with epprof_nb.profile() as prof:
        assert kind()(IDS).sum() == 8
        assert Model()(IDS, cache=argument).sum() == 8
    assert {"Odd", "Model"} <= set(prof.ops["name"])


def test_a_global_variable_whose_name_is_no_text(monkeypatch):
    monkeypatch.setitem(vars(sys.modules["__main__"]), 1, Model())
    with epprof_nb.profile():
        assert Model()(IDS).sum() == 8


class Dispatched(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))


class Functions(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.seen.append(function.__name__)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [Dispatched, Functions])
def test_a_mode_sees_the_calls_of_the_program_only(mode):
    model, seen = Model(), []

    def run():
        with mode() as entered:
            model(IDS, cache=layers_made, position_ids=POSITIONS)
        seen.append(entered.seen)

    layers_made = layers()
    run()
    with epprof_nb.profile() as prof:
        run()
    assert seen[0] == seen[1]
    assert prof.by_phase()[["phase", "tokens"]].values.tolist() == [["prefill", 4]]


def test_tracing_warns_as_without_a_profile():
    def traced():
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            model = Model()
            made = torch.jit.trace(
                lambda ids, at: model(ids, cache=kept, position_ids=at), (IDS, POSITIONS)
            )
        return made.code, [str(warning.message) for warning in found]

    kept = layers()
    alone = traced()
    with epprof_nb.profile():
        assert traced() == alone


def test_tensors_of_a_cache_live_no_longer():
    model, tensor = Model(), torch.ones(1, 2, 4, 8)
    alive = weakref.ref(tensor)
    gc.disable()
    try:
        with epprof_nb.profile():
            model(IDS, cache=[(tensor, tensor)])
            del tensor
            assert alive() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("make", [dict, lambda pairs: [[key] for key, _ in pairs]])
def test_a_container_of_anything_is_not_read_to_its_end(make):
    large = make((i, i) for i in range(100_000))
    assert len(kv_caches.numbers({"state": large, "more": large})) <= kv_caches._MAX_VALUES


def test_caches_of_an_encoder_are_left_out():
    named = [(name, torch.ones(1, 1, 1)) for name in ("cache", "encoder_cache", "cross_kvs")]
    assert [id(found) for found in kv_caches.caches_in(named)] == [id(named[0][1])]


def test_a_cache_that_contains_itself():
    cache = layers()
    cache.append(cache)
    assert len(kv_caches.tensors(cache)) == 2
    assert len(kv_caches.tensors(cache, 1)) == 1


def test_a_dictionary_with_code_of_its_own():
    class Lazy(dict):
        def items(self):
            raise AssertionError

        values = __iter__ = items

    with epprof_nb.profile() as prof:
        Model()(IDS, cache=Lazy(layers=layers()))
    assert prof.by_phase()["cache_bytes"].tolist() == [512]


def test_an_interrupt_while_a_call_ends_is_raised():
    class Interrupting:
        @property
        def __dict__(self):
            raise KeyboardInterrupt

    class Returns(nn.Module):
        def forward(self, ids, cache=None):
            return Interrupting()

    with pytest.raises(KeyboardInterrupt), epprof_nb.profile():
        Returns()(IDS)


@pytest.mark.parametrize("name", ["ids", "cache", "position_ids"])
def test_an_argument_that_raises_system_exit_when_it_is_looked_at(name):
    class Ends:
        @property
        def __class__(self):
            raise SystemExit(3)

    class Takes(nn.Module):
        def forward(self, **values):
            return len(values)

    with epprof_nb.profile(detail="memory") as prof:
        assert Takes()(**{"ids": IDS, name: Ends(), "other": [Ends()]}) == 2 + (name != "ids")
    assert (prof.ops["op_type"] == "module").sum() == 1
