"""Prefill and decode of a model of transformers on the GPU."""

import pytest

import epprof_nb

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

PROMPT, NEW = 48, 12


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=500, hidden_size=128, intermediate_size=256, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).cuda().eval()
    generated(model)
    return model


def generated(model, **options):
    ids = torch.arange(2 * PROMPT, device="cuda").reshape(2, PROMPT) % 500
    options = {"max_new_tokens": NEW, "do_sample": False, "pad_token_id": 0} | options
    return model.generate(ids, attention_mask=torch.ones_like(ids), **options)


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_prefill_and_decode(model, cache):
    options = {"min_new_tokens": NEW}
    if cache == "static":
        options |= {"cache_implementation": "static", "disable_compile": True}
    plain = generated(model, **options)
    with epprof_nb.profile() as prof:
        assert torch.equal(generated(model, **options), plain)
    frame = prof.by_phase()
    assert frame["phase"].tolist() == ["prefill", "decode"]
    assert frame["calls"].tolist() == [1, NEW - 1]
    assert frame["tokens"].tolist() == [PROMPT, NEW - 1]
    assert frame["past_tokens"].tolist() == [0, PROMPT]
    assert frame["batch"].tolist() == [2, 2]
    # All work of the model belongs to a phase; sampling does not.
    assert set(frame["model"]) == {"LlamaForCausalLM"}
    of_model = prof.by_module().loc["LlamaForCausalLM", "device_ns"]
    assert frame["device_ns"].sum() == of_model > 0
    assert (frame["idle_ns"] <= frame["wall_ns"]).all()
    assert (frame["launch_idle_ns"] <= frame["idle_ns"]).all()
