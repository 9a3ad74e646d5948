"""A decoder that generates tokens: each run has longer inputs than the one before."""

from __future__ import annotations

import epprof_nb
from epprof_nb.recording.onnxruntime import choice_of_runs
from epprof_nb.recording.onnxruntime.choice_of_runs import MAX_SIZES
from tests.ort import decoder
from tests.ort.rows import nested_in_time, nodes, runs

STEPS = 60


def generated(session):
    with epprof_nb.profile() as prof:
        tokens, _ = decoder.generate(session, STEPS)
    return prof, tokens


def test_few_steps_of_a_generation_are_recorded(installed, monkeypatch):
    monkeypatch.setattr(choice_of_runs, "SAMPLED_SHARE", -1.0)  # the first runs only
    epprof_nb.onnxruntime.install(nodes="auto")
    session = installed.InferenceSession(decoder.decoder())
    plain, _ = decoder.generate(session, STEPS)
    prof, tokens = generated(session)
    assert tokens == plain
    states = prof.by_run()["node_events"].tolist()
    assert states == ["recorded"] * (MAX_SIZES + 2) + ["not recorded"] * (STEPS - MAX_SIZES - 2)
    found = nodes(prof)
    assert len(found) % (MAX_SIZES + 2) == 0
    assert set(found["run_id"]) == set(range(MAX_SIZES + 2))
    assert len(runs(prof)) == STEPS
    assert nested_in_time(prof)
    # A second generation has the same sizes; the first of the further ones is recorded, too.
    again, _ = generated(session)
    assert again.by_run()["node_events"].tolist().count("recorded") == MAX_SIZES + 1


def test_bound_inputs_are_told_apart_by_their_sizes(installed, monkeypatch):
    monkeypatch.setattr(choice_of_runs, "SAMPLED_SHARE", -1.0)
    epprof_nb.onnxruntime.install(nodes="auto")
    session = installed.InferenceSession(decoder.decoder())
    plain, _ = decoder.generate(session, STEPS)
    with epprof_nb.profile() as prof:
        assert decoder.generate_bound(session, STEPS) == plain
    states = prof.by_run()["node_events"].tolist()
    assert states == ["recorded"] * (MAX_SIZES + 2) + ["not recorded"] * (STEPS - MAX_SIZES - 2)


def test_the_sizes_of_a_binding_from_before_are_unknown(installed):
    session = installed.InferenceSession(decoder.decoder())
    epprof_nb.onnxruntime.uninstall()
    binding = session.io_binding()
    epprof_nb.onnxruntime.install(nodes="auto")
    _, feed = decoder.generate(session, 2)
    for name, value in feed.items():
        binding.bind_cpu_input(name, value)
    binding.bind_output("logits")
    with epprof_nb.profile() as prof:
        session.run_with_iobinding(binding)
    assert prof.by_phase().empty
    assert len(runs(prof)) == 1
