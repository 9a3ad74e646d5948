"""Prefill and decode of sessions with a KV cache."""

from __future__ import annotations

import pytest

import epprof_nb
from tests.ort import decoder, test_genai

STEPS = 12


@pytest.mark.parametrize("nodes", ["auto", "every", "off"])
def test_a_generation_with_arrays(installed, nodes):
    session = installed.InferenceSession(decoder.decoder())
    with epprof_nb.profile(ort_nodes=nodes) as prof:
        for _ in range(2):
            decoder.generate(session, STEPS)
    frame = prof.by_phase()
    assert frame["phase"].tolist() == ["prefill", "decode"] * 2
    assert frame["tokens"].tolist() == [1, STEPS - 1] * 2
    assert frame["past_tokens"].tolist() == [0, 1] * 2
    per_token = 2 * 2 * 64 * 4  # layers, keys and values, width, float32
    assert frame["cache_bytes"].tolist() == [0, (STEPS - 1) * per_token] * 2
    runs = prof.by_run()
    assert frame["host_ns"].sum() == runs["host_ns"].sum()
    assert frame["calls"].sum() == len(runs)


def test_a_generation_with_bound_inputs(installed):
    session = installed.InferenceSession(decoder.decoder())
    with epprof_nb.profile() as prof:
        decoder.generate_bound(session, STEPS)
    frame = prof.by_phase()
    assert frame["calls"].tolist() == [1, STEPS - 1]
    assert frame["batch"].tolist() == [1, 1]
    assert frame["cache_bytes"].tolist()[1] == (STEPS - 1) * 2 * 2 * 64 * 4


def test_a_profile_that_begins_inside_of_a_generation(installed):
    session = installed.InferenceSession(decoder.decoder())
    _, feed = decoder.generate(session, 5)
    with epprof_nb.profile() as prof:
        decoder.generate(session, 4, feed)
    assert prof.by_phase()[["phase", "past_tokens", "tokens"]].values.tolist() == [["decode", 5, 4]]


def test_other_sessions_have_no_phases(installed, x):
    from tests.ort import models

    session = installed.InferenceSession(models.chain())
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x})
    assert prof.by_phase().empty
    assert "tokens" not in str(prof.ops["args"].tolist())


@pytest.mark.release_independent
def test_a_generation_of_onnxruntime_genai(installed, tmp_path):
    genai = pytest.importorskip("onnxruntime_genai", reason="onnxruntime-genai is not installed")
    model = genai.Model(test_genai.generative(tmp_path / "tiny"))
    with epprof_nb.profile() as prof:
        test_genai.generated(genai, model)
    prompt = len(test_genai.PROMPT)
    frame = prof.by_phase()
    assert frame["model"].tolist() == ["tiny", "tiny"]
    # The last token is generated, but not processed.
    assert frame["tokens"].tolist() == [prompt, test_genai.LENGTH - prompt - 1]
    assert frame["past_tokens"].tolist() == [0, prompt]
