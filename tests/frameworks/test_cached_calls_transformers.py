"""Prefill and decode in loops around models of transformers, with each kind of cache."""

from __future__ import annotations

import pytest

import epprof_nb

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SIZES = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).eval()


def loop(model, cache, length, steps, batch=1):
    ids = torch.ones(batch, length, dtype=torch.int64)
    for _ in range(steps):
        outputs = model(ids, past_key_values=cache, use_cache=True)
        cache, ids = outputs.past_key_values, outputs.logits[:, -1:].argmax(-1)
    return cache


def phases(prof):
    frame = prof.by_phase()[["generation", "phase", "calls", "tokens", "past_tokens"]]
    return list(frame.itertuples(index=False, name=None))


@pytest.mark.parametrize("made", ["by the model", "before"])
def test_a_dynamic_cache(llama, made):
    cache = transformers.DynamicCache(config=llama.config) if made == "before" else None
    with torch.no_grad(), epprof_nb.profile() as prof:
        loop(llama, cache, 9, 5, batch=4)
    assert phases(prof) == [(0, "prefill", 1, 9, 0), (0, "decode", 4, 4, 9)]
    assert prof.by_phase()["batch"].tolist() == [4, 4]


@pytest.mark.parametrize("mode", ["no_grad", "inference_mode"])
def test_a_static_cache_that_is_reset_for_the_next_prompt(llama, mode):
    with getattr(torch, mode)(), epprof_nb.profile() as prof:
        cache = transformers.StaticCache(config=llama.config, max_cache_len=64)
        loop(llama, cache, 9, 4)
        cache.reset()
        loop(llama, cache, 20, 4)
    assert phases(prof) == [
        (0, "prefill", 1, 9, 0), (0, "decode", 3, 3, 9),
        (1, "prefill", 1, 20, 0), (1, "decode", 3, 3, 20),
    ]  # fmt: skip


def test_a_window_that_is_shorter_than_the_sequence():
    config = transformers.MistralConfig(**SIZES, sliding_window=8)
    model = transformers.MistralForCausalLM(config).eval()
    with torch.no_grad(), epprof_nb.profile() as prof:
        loop(model, None, 5, 9)
    assert phases(prof) == [(0, "prefill", 1, 5, 0), (0, "decode", 8, 8, 5)]


def test_the_decoder_of_a_model_with_an_encoder():
    config = transformers.T5Config(
        vocab_size=50, d_model=32, d_kv=8, d_ff=32, num_layers=2, num_heads=4
    )
    model = transformers.T5ForConditionalGeneration(config).eval()
    source, ids, cache = torch.ones(1, 12, dtype=torch.int64), torch.zeros(1, 3).long(), None
    with torch.no_grad(), epprof_nb.profile() as prof:
        for _ in range(4):
            outputs = model(source, decoder_input_ids=ids, past_key_values=cache, use_cache=True)
            cache, ids = outputs.past_key_values, outputs.logits[:, -1:].argmax(-1)
    assert phases(prof) == [(0, "prefill", 1, 3, 0), (0, "decode", 3, 3, 3)]


def test_calls_in_generate_count_once(llama):
    ids = torch.ones(1, 9, dtype=torch.int64)
    with torch.no_grad(), epprof_nb.profile() as prof:
        llama.generate(ids, max_new_tokens=5, min_new_tokens=5, do_sample=False, pad_token_id=0)
    assert phases(prof) == [(0, "prefill", 1, 9, 0), (0, "decode", 4, 4, 9)]


def test_training_has_no_phases(llama):
    ids = torch.ones(1, 9, dtype=torch.int64)
    with epprof_nb.profile() as prof:
        for _ in range(2):
            llama(ids, labels=ids).loss.backward()
    assert prof.by_phase().empty
