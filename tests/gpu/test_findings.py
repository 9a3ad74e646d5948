"""Findings of cells with a planted cause, and none for the same cells without it."""

import pytest

pytest.importorskip("cupy", reason="CuPy is not installed")
from tests.gpu.causes import CAUSES, FALLBACK, REPLAY, has_sessions, of_kind, profiled


@pytest.mark.parametrize("name", list(CAUSES))
def test_a_planted_cause_is_found_at_its_line_and_nothing_without_it(name):
    cause = CAUSES[name]
    if cause is FALLBACK and not has_sessions():
        pytest.skip("onnxruntime-gpu is not installed")
    slow, fast = (profiled(source) for source in (cause.slow, cause.fast))
    found, left = of_kind(slow, cause.kind), of_kind(fast, cause.kind)
    assert len(left) == 0
    top = found.iloc[0]
    assert top["line"] == cause.line
    assert len(slow.evidence(top)) > 0


def test_a_device_that_replays_graphs_is_busy():
    prof = profiled(REPLAY)
    row = prof.overlap().iloc[0]
    assert row["idle_ns"] < 0.02 * row["span_ns"]
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    assert len(kernels) == 1000
    assert kernels["graph_id"].notna().all()
    found = prof.insights()
    found = found[~found["text"].str.contains("before its first|after its last")]
    assert not set(found["kind"]) & {"idle", "launch-bound", "wait", "held work"}
