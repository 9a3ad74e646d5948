"""Lengths of the query and of the KV cache from the inputs of a model."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from epprof_nb.recording.onnxruntime.token_inputs import (
    ATTRIBUTE,
    add_call,
    lengths_of,
    token_inputs,
)

HALF = np.float16
CACHES = [f"past_key_values.{i}.{name}" for i in range(2) for name in ("key", "value")]


def inputs(**shapes):
    return token_inputs([SimpleNamespace(name=n, shape=s) for n, s in shapes.items()])


def optimum(length="past_sequence_length", mask="total_sequence_length"):
    return inputs(
        input_ids=["batch_size", "sequence_length"],
        attention_mask=["batch_size", mask],
        position_ids=["batch_size", "sequence_length"],
        **{
            f"past_key_values.{i}.{n}": [1, 2, length, 8]
            for i in range(2)
            for n in ("key", "value")
        },
    )


def feed(tokens, past, mask=None, positions=None, batch=1):
    given = {name: np.zeros((batch, 2, past, 8), HALF) for name in CACHES}
    given["input_ids"] = np.zeros((batch, tokens), np.int64)
    given["attention_mask"] = np.ones((batch, mask or past + tokens), np.int64)
    if positions is not None:
        given["position_ids"] = np.arange(positions, positions + tokens)[None]
    return given


def test_a_growing_cache_has_the_length_of_its_axis():
    assert lengths_of(optimum(), feed(7, 0, batch=3)) == (3, 7, 0, 0)
    assert lengths_of(optimum(), feed(1, 12)) == (1, 1, 12, 4 * 2 * 12 * 8 * 2)


def test_a_cache_of_a_fixed_size_is_filled_as_far_as_the_mask_says():
    assert lengths_of(optimum(), feed(1, 64, mask=13))[:3] == (1, 1, 12)
    assert lengths_of(optimum(), feed(7, 64, mask=7))[:3] == (1, 7, 0)


def test_a_mask_of_the_same_size_leaves_it_to_the_positions():
    assert lengths_of(optimum(64, 64), feed(1, 64, mask=64, positions=12))[:3] == (1, 1, 12)
    assert lengths_of(optimum(64, 64), feed(7, 64, mask=64, positions=0))[:3] == (1, 7, 0)


def test_other_layouts_and_names():
    gpt2 = inputs(input_ids=["b", "s"], past_0=[2, "b", 4, "past_seq", 8])
    assert gpt2.axis == 3
    heads_last = inputs(tokens=["b", "s"], past_k0=["b", "past", 4, 8], past_v0=["b", "past", 4, 8])
    assert heads_last.axis == 1
    fixed = inputs(inputs_embeds=["b", "s", 64], k_cache_0=[1, 4, 128, 8])
    assert fixed.axis == 2
    flat = lengths_of(
        fixed, {"inputs_embeds": np.zeros((2, 5, 64)), "k_cache_0": np.zeros((1, 4, 128, 8))}
    )
    assert flat[:2] == (2, 5)


def test_the_cache_of_an_encoder_is_not_that_of_the_decoder():
    found = inputs(
        decoder_input_ids=["b", "s"],
        **{f"past_key_values.0.{part}.key": ["b", 4, "l", 8] for part in ("encoder", "decoder")},
    )
    assert found.cache == ("past_key_values.0.decoder.key",)


@pytest.mark.parametrize(
    "positions",
    [np.array(3), np.array([[np.nan]]), np.array([["a"]]), np.zeros((1, 0), int), "text"],
)
def test_positions_that_are_no_integers_tell_nothing(positions):
    given = feed(1, 12) | {"position_ids": positions}
    assert lengths_of(optimum(), given)[:3] == (1, 1, 12)


def test_inputs_of_any_kind_raise_nothing():
    class Strange:
        @property
        def shape(self):
            raise OSError("gone")

    session = SimpleNamespace(get_inputs=Strange)
    add_call(session, 0, {})
    setattr(session, ATTRIBUTE, optimum())
    add_call(session, 0, feed(1, 12) | {"input_ids": Strange()})


@pytest.mark.parametrize(
    "shapes",
    [
        {},
        {"x": [1, 2]},
        {"input_ids": ["b", "s"], "attention_mask": ["b", "s"]},  # an encoder
        {"input_ids": ["b", "s"], "past_sequence_length": [1]},
        {"past_key_values.0.key": ["b", 4, "past", 8]},
    ],
)
def test_other_models_are_no_language_models_with_a_cache(shapes):
    assert inputs(**shapes) is None


def test_inputs_that_are_missing_or_of_another_rank_tell_nothing():
    given = feed(1, 12)
    for name in ("input_ids", "past_key_values.0.key"):
        assert lengths_of(optimum(), {n: v for n, v in given.items() if n != name}) is None
        assert lengths_of(optimum(), given | {name: np.zeros(())}) is None
        assert lengths_of(optimum(), given | {name: "text"}) is None
    without_mask = {n: v for n, v in given.items() if n != "attention_mask"}
    assert lengths_of(optimum(), without_mask)[:3] == (1, 1, 12)
