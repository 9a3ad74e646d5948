"""Prefill and decode of ``generate`` of transformers."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

import epprof_nb

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402 - torch may be missing


class Mixin:
    """The loop of ``GenerationMixin`` with the names of transformers, and nothing else."""

    def generate(self, ids, steps, past_key_values=None, *, mask=True, fails_at=None):
        given = {"past_key_values": past_key_values}
        name = "attention_mask" if mask else "position_ids"
        length = past_key_values.get_seq_length() if past_key_values else 0
        given[name] = torch.ones(len(ids), length + ids.shape[1], dtype=torch.int64)
        for i in range(steps):
            if i == fails_at:
                raise RuntimeError("no")
            outputs = self(ids, given["past_key_values"])
            given = self._update_model_kwargs_for_generation(outputs, given)
            ids = outputs.logits[:, -1:].argmax(-1)
        return ids

    def _update_model_kwargs_for_generation(self, outputs, model_kwargs):
        changed = {"past_key_values": outputs.past_key_values}
        for name in ("attention_mask", "position_ids"):
            if name in model_kwargs:
                value = model_kwargs[name]
                changed[name] = torch.cat([value, value[:, -1:]], 1)
        return changed


class Cache:
    def __init__(self, keys):
        self.layers = [SimpleNamespace(keys=keys, values=keys)]

    def get_seq_length(self):
        return self.layers[0].keys.shape[1]


@pytest.fixture
def model(monkeypatch):
    """A model of the only class of a module that looks like transformers' module."""
    name = "transformers.generation.utils"
    module = ModuleType(name)
    module.__spec__ = SimpleNamespace(_initializing=False)
    module.GenerationMixin = type("GenerationMixin", (Mixin,), dict(vars(Mixin)))
    monkeypatch.setitem(sys.modules, name, module)

    class Model(nn.Module, module.GenerationMixin):
        caches = True

        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(10, 4)

        def forward(self, ids, cache):
            keys = self.embedding(ids)
            if not self.caches:
                return SimpleNamespace(logits=keys, past_key_values=None)
            keys = torch.cat([cache.layers[0].keys, keys], 1) if cache else keys
            return SimpleNamespace(logits=keys[:, -1:], past_key_values=Cache(keys))

    return Model()


IDS = torch.tensor([[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("mask", [True, False])
def test_prefill_and_decode(model, mask):
    plain = model.generate(IDS, 5, mask=mask)
    with epprof_nb.profile() as prof:
        assert torch.equal(model.generate(IDS, 5, mask=mask), plain)
    frame = prof.by_phase()
    assert frame["model"].tolist() == ["Model", "Model"]
    assert frame["phase"].tolist() == ["prefill", "decode"]
    assert frame["calls"].tolist() == [1, 4]
    assert frame["tokens"].tolist() == [3, 4]
    assert frame["batch"].tolist() == [2, 2]
    assert frame["past_tokens"].tolist() == [0, 3]
    assert frame["cache_bytes"].tolist() == [2 * 2 * n * 4 * 4 for n in (3, 7)]


def test_a_cache_from_an_earlier_generation(model):
    cache = model(IDS, None).past_key_values
    with epprof_nb.profile() as prof:
        model.generate(IDS[:, :2], 3, past_key_values=cache)
    assert prof.by_phase()[["tokens", "past_tokens"]].values.tolist() == [[2, 3], [2, 5]]


def test_without_a_cache_each_call_processes_the_whole_sequence(model):
    model.caches = False
    with epprof_nb.profile() as prof:
        model.generate(IDS, 3)
    frame = prof.by_phase()
    assert frame["tokens"].tolist() == [3, 4 + 5]
    assert frame["phase"].tolist() == ["prefill", "decode"]
    assert "use_cache=True" in frame.attrs["note"]


def test_the_next_turn_of_a_chat_is_a_generation_of_its_own(model):
    with epprof_nb.profile() as prof:
        cache = model(IDS, None).past_key_values
        for _ in range(2):
            model.generate(IDS[:, :2], 3, past_key_values=cache)
    frame = prof.by_phase()
    assert frame["phase"].tolist() == ["prefill", "decode"] * 2
    assert frame["tokens"].tolist() == [2, 2] * 2
    assert frame["past_tokens"].tolist() == [3, 5] * 2


def test_generations_inside_of_another_one(model):
    class Outer(type(model)):
        def _update_model_kwargs_for_generation(self, outputs, model_kwargs):
            made = super()._update_model_kwargs_for_generation(outputs, model_kwargs)
            model.generate(IDS, 2)
            return made

    outer = Outer()
    plain = outer.generate(IDS, 3)
    with epprof_nb.profile() as prof:
        assert torch.equal(outer.generate(IDS, 3), plain)
    frame = prof.by_phase()
    rows = frame[frame["model"] == "Outer"]
    assert rows["phase"].tolist() == ["prefill", "decode"]
    assert rows["calls"].tolist() == [1, 2]
    assert frame[frame["model"] == "Model"]["calls"].tolist() == [1, 1] * 3


def test_an_error_ends_the_generation(model):
    with epprof_nb.profile() as prof:
        with pytest.raises(RuntimeError, match="no"):
            model.generate(IDS, 3, fails_at=2)
        model.generate(IDS, 2)
    assert prof.by_phase()["calls"].tolist() == [1, 1, 1, 1]


def test_the_methods_are_put_back(model):
    mixin = type(model).__mro__[2]
    before = dict(vars(mixin))
    with epprof_nb.profile():
        assert mixin.generate is not before["generate"]
    assert dict(vars(mixin)) == before
    with epprof_nb.profile(frameworks=[]) as prof:
        model.generate(IDS, 2)
    assert prof.by_phase().empty


def test_outputs_of_any_kind_raise_nothing(model):
    class Odd(type(model)):
        def _update_model_kwargs_for_generation(self, outputs, model_kwargs):
            super()._update_model_kwargs_for_generation(
                SimpleNamespace(logits="text", past_key_values=None), {}
            )
            return super()._update_model_kwargs_for_generation(outputs, model_kwargs)

    odd = Odd()
    plain = odd.generate(IDS, 2)
    with epprof_nb.profile():
        assert torch.equal(odd.generate(IDS, 2), plain)
