"""Models of onnxruntime-genai, which has a copy of ONNX Runtime of its own."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import epprof_nb
from epprof_nb.recording.onnxruntime import choice_of_runs
from epprof_nb.recording.onnxruntime.choice_of_runs import MAX_SIZES
from tests.ort import decoder, models
from tests.ort.rows import nested_in_time, nodes, runs

pytestmark = pytest.mark.release_independent

LAYERS, HEADS, WIDTH = 2, 4, 64
PROMPT = [1, 5, 7]
LENGTH = 40


def generative(folder):
    """Write a decoder with the names and the configuration that onnxruntime-genai expects."""
    model = onnx.load_from_string(decoder.decoder(LAYERS, HEADS, WIDTH))
    graph = model.graph
    names = {"token": "input_ids"}
    for i in range(LAYERS):
        for short, long in (("k", "key"), ("v", "value")):
            names[f"past_{short}{i}"] = f"past_key_values.{i}.{long}"
            names[f"{short}{i}"] = f"present.{i}.{long}"
    for node in graph.node:
        for of_node in (node.input, node.output):
            of_node[:] = [names.get(name, name) for name in of_node]
    for value in [*graph.input, *graph.output]:
        value.name = names.get(value.name, value.name)
        dims = value.type.tensor_type.shape.dim
        dims[0].dim_param = "batch"
        if value.name in {"input_ids", "logits"}:
            dims[1].dim_param = "tokens"
    for weight in graph.initializer:
        if weight.name in {"by_head", "joined"}:  # shapes of any number of sequences and tokens
            shape = numpy_helper.to_array(weight).copy()
            shape[:2] = 0, -1
            weight.CopyFrom(numpy_helper.from_array(shape, weight.name))
    graph.input.append(
        helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "total"])
    )
    folder.mkdir()
    onnx.save(model, folder / "model.onnx")
    past = {f"past_{name}_names": f"past_key_values.%d.{name}" for name in ("key", "value")}
    present = {f"present_{name}_names": f"present.%d.{name}" for name in ("key", "value")}
    config = {
        "model": {
            "type": "llama",
            "bos_token_id": 1,
            "eos_token_id": decoder.VOCABULARY - 1,
            "pad_token_id": 0,
            "context_length": 512,
            "vocab_size": decoder.VOCABULARY,
            "decoder": {
                "session_options": {"provider_options": []},
                "filename": "model.onnx",
                "head_size": WIDTH // HEADS,
                "hidden_size": WIDTH,
                "num_attention_heads": HEADS,
                "num_key_value_heads": HEADS,
                "num_hidden_layers": LAYERS,
                "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask"} | past,
                "outputs": {"logits": "logits"} | present,
            },
        },
        "search": {"max_length": 200, "do_sample": False, "past_present_share_buffer": False},
    }
    (folder / "genai_config.json").write_text(json.dumps(config))
    return str(folder)


@pytest.fixture
def folder(tmp_path):
    return generative(tmp_path / "tiny")


@pytest.fixture
def genai(installed):
    return pytest.importorskip("onnxruntime_genai", reason="onnxruntime-genai is not installed")


def generated(genai, model, generator=None):
    """The tokens of a generation of `LENGTH` tokens, prompt included."""
    parameters = genai.GeneratorParams(model)
    parameters.set_search_options(max_length=LENGTH)
    generator = generator or genai.Generator(model, parameters)
    generator.append_tokens(PROMPT)
    while not generator.is_done():
        generator.generate_next_token()
    return list(generator.get_sequence(0))


def test_each_step_is_a_run_with_its_nodes(genai, folder):
    model = genai.Model(folder)
    plain = generated(genai, model)
    with epprof_nb.profile() as prof:
        assert generated(genai, model) == plain
    steps = LENGTH - len(PROMPT)  # the first one has the prompt
    assert len(runs(prof)) == steps
    assert set(prof.by_run()["node_events"]) == {"recorded"}
    per_run = nodes(prof).groupby("run_id").size()
    assert per_run.nunique() == 1
    assert "scores0" in " ".join(nodes(prof)["name"])
    # Keys of earlier tokens grow by one at each step.
    keys = nodes(prof).query("name == 'k0'")["output_shapes"].tolist()
    lengths = [len(PROMPT) + i for i in range(steps)]
    assert keys == [f"float[1,{HEADS},{n},{WIDTH // HEADS}]" for n in lengths]
    assert list(prof.info["onnxruntime_sessions"].values()) == ["tiny"]
    assert list(prof.info["onnxruntime_providers"].values()) == [["CPUExecutionProvider"]]
    assert nested_in_time(prof)


def test_few_steps_are_recorded_by_default(genai, folder, monkeypatch):
    monkeypatch.setattr(choice_of_runs, "SAMPLED_SHARE", -1.0)  # the first runs only
    epprof_nb.onnxruntime.install(nodes="auto")
    model = genai.Model(folder)
    with epprof_nb.profile() as prof:
        generated(genai, model)
    states = prof.by_run()["node_events"].tolist()
    steps = LENGTH - len(PROMPT)
    # The prompt, which comes in another call, and the steps of the first sizes. In the first step
    # nothing runs: the prompt has given the token.
    assert states.count("recorded") == 1 + (MAX_SIZES - 1) + 2
    assert states.count("not recorded") == steps - states.count("recorded")
    assert set(nodes(prof)["run_id"]) == {i for i, s in enumerate(states) if s == "recorded"}
    assert nested_in_time(prof)


def test_sessions_of_both_libraries_in_one_profile(genai, installed, folder, x):
    session = installed.InferenceSession(models.chain())
    model = genai.Model(folder)
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x})
        generated(genai, model)
        session.run(None, {"x": x})
    names = prof.info["onnxruntime_sessions"]
    by_session = nodes(prof).groupby("session").size()
    assert {names[str(number)]: count > 6 for number, count in by_session.items()} == {
        "chain": False,
        "tiny": True,
    }
    assert nested_in_time(prof)


def test_nothing_is_recorded_outside_of_profiles_or_in_the_mode_off(genai, folder):
    model = genai.Model(folder)
    with epprof_nb.profile(ort_nodes="off") as prof:
        generated(genai, model)
    assert set(prof.by_run()["node_events"]) == {"not recorded"}
    assert nodes(prof).empty
    generated(genai, model)
    with epprof_nb.profile() as prof:
        pass
    assert prof.ops.empty


def test_the_configuration_of_the_user_stays_as_it_is(genai, folder):
    config = genai.Config(folder)
    config.overlay('{"search": {"max_length": 30}}')
    models = [genai.Model(config) for _ in range(2)]
    with epprof_nb.profile() as prof:
        for model in models:
            generator = genai.Generator(model, genai.GeneratorParams(model))
            generator.append_tokens(PROMPT)
            while not generator.is_done():
                generator.generate_next_token()
            assert generator.token_count() == 30
    assert prof.ops["session"].dropna().nunique() == 2
    epprof_nb.onnxruntime.uninstall()
    assert len(generated(genai, genai.Model(config))) == LENGTH


def test_a_profile_that_the_user_enabled_stays_enabled(genai, folder, tmp_path):
    model = genai.Model(folder)
    parameters = genai.GeneratorParams(model)
    parameters.set_search_options(max_length=LENGTH)
    generator = genai.Generator(model, parameters)
    generator.set_runtime_option("enable_profiling", str(tmp_path / "mine"))
    with epprof_nb.profile() as prof:
        generated(genai, model, generator)
    # The names have milliseconds: two steps may write the same file.
    assert len(list(tmp_path.glob("mine*.json"))) > 1
    assert set(prof.by_run()["node_events"]) == {"recorded"}


def test_models_that_are_not_observed_are_named(genai, folder):
    epprof_nb.onnxruntime.uninstall()
    config = genai.Config(folder)
    model = genai.Model(config)
    epprof_nb.onnxruntime.install()
    with epprof_nb.profile() as prof:
        generated(genai, model)
        generated(genai, genai.Model(config))
    assert nodes(prof).empty
    notes = "\n".join(prof.info["notes"])
    assert "it was created before epprof_nb.onnxruntime.install()" in notes
    assert "its Config was made before" in notes


def test_errors_are_those_of_the_library(genai, folder, tmp_path):
    with pytest.raises(Exception, match="genai_config"):
        genai.Model(str(tmp_path / "nowhere"))
    model = genai.Model(folder)
    with epprof_nb.profile() as prof:
        generator = genai.Generator(model, genai.GeneratorParams(model))
        with pytest.raises(Exception, match=r"(?i)input|token"):
            generator.generate_next_token()
        with pytest.raises(Exception, match=r"(?i)index|bound"):
            generator.append_tokens(np.array([decoder.VOCABULARY + 1], np.int32))
    assert generated(genai, model)
    assert nested_in_time(prof)
