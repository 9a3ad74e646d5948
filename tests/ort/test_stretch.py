"""Unprofiled runs are timed, so that a profile can report the profiling overhead of runs."""

from __future__ import annotations

import numpy as np
import pytest

import epprof_nb
from epprof_nb.recording.onnxruntime import unprofiled_runs
from epprof_nb.util.format import three_digits
from tests.ort import models
from tests.ort.rows import runs


def ran(session, feeds, times):
    for _ in range(times):
        session.run(None, feeds)


def profiled(session, feeds, times=1):
    with epprof_nb.profile() as prof:
        ran(session, feeds, times)
    return prof


def stretches(prof):
    return prof.info["onnxruntime_stretch"]


def test_runs_are_held_against_unprofiled_ones_of_the_same_session(installed, x):
    session = installed.InferenceSession(models.chain([f"n{i}" for i in range(60)]))
    ran(session, {"x": x}, 6)
    (times,) = getattr(session, unprofiled_runs.ATTRIBUTE)._times.values()
    assert len(times) == 5
    assert min(times) > 0
    # A busy machine may slow any run: with these times, the profiled ones are the longer ones.
    times.extend([1_000] * unprofiled_runs._MAX_RUNS)
    prof = profiled(session, {"x": x}, 5)
    (entry,) = stretches(prof)
    table = prof.by_run()
    assert set(table["unprofiled_ns"]) == {1_000}
    assert entry["runs"] == entry["compared"] == 5
    assert entry["unprofiled_ns"] == table["unprofiled_ns"].median()
    assert entry["profiled_ns"] == table["call_ns"].median()
    assert entry["stretch"] == pytest.approx(entry["profiled_ns"] / entry["unprofiled_ns"], 1e-3)
    assert (table["call_ns"] > table["host_ns"]).all()  # the call encloses the run
    slowed = f"slowed these runs by {three_digits(entry['stretch'])}x"
    assert any(slowed in note for note in prof.info["notes"])


def test_a_session_never_run_outside_of_a_profile_says_so(installed, x):
    prof = profiled(installed.InferenceSession(models.chain()), {"x": x})
    (entry,) = stretches(prof)
    assert entry["compared"] == 0
    assert "stretch" not in entry
    assert prof.by_run()["unprofiled_ns"].isna().all()
    assert prof.by_run()["stretch"].isna().all()
    assert any("an unknown factor" in note for note in prof.info["notes"])


def test_the_first_run_with_its_shapes_is_no_measure(installed, x):
    session = installed.InferenceSession(models.chain())
    ran(session, {"x": x}, 1)
    assert stretches(profiled(session, {"x": x}))[0]["compared"] == 0
    ran(session, {"x": x}, 1)
    assert stretches(profiled(session, {"x": x}))[0]["compared"] == 1


def test_only_runs_with_inputs_of_the_same_shapes_are_compared(installed, x):
    session = installed.InferenceSession(models.chain())
    ran(session, {"x": x}, 3)
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x})
        session.run(None, {"x": np.zeros((7, 4), np.float32)})
    assert prof.by_run()["unprofiled_ns"].isna().tolist() == [False, True]
    assert stretches(prof)[0]["compared"] == 1


def test_profiled_runs_are_no_measure_of_unprofiled_ones(installed, x, tmp_path):
    session = installed.InferenceSession(models.chain())
    profiled(session, {"x": x}, 3)
    options = installed.RunOptions()
    epprof_nb.onnxruntime.enable_profiling(options, profile_file_prefix=str(tmp_path / "run"))
    for _ in range(3):
        session.run(None, {"x": x}, options)
    assert stretches(profiled(session, {"x": x}))[0]["compared"] == 0


def test_runs_of_a_session_profiled_as_a_whole_are_no_measure(installed, x, tmp_path):
    options = installed.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "whole")
    session = installed.InferenceSession(models.chain(), options)
    ran(session, {"x": x}, 3)
    assert stretches(profiled(session, {"x": x}))[0]["compared"] == 0
    session.end_profiling()
    ran(session, {"x": x}, 3)
    assert stretches(profiled(session, {"x": x}))[0]["compared"] == 1


def test_a_run_has_the_length_of_the_call_around_it_on_its_thread(monkeypatch):
    # thread, begin, end, unprofiled, shapes
    calls = [(7, 100, 200, 50, 1), (7, 300, 400, unprofiled_runs.MISSING, 2), (8, 500, 600, 60, 1)]
    monkeypatch.setattr(unprofiled_runs, "_calls", calls)
    threads = np.array([8, 7, 7, 7, 7, 9])
    starts = np.array([520, 310, 110, 120, 250, 110])
    call, plain, shapes = unprofiled_runs.call_durations(threads, starts)
    # The second run in one call, a run between calls and one of another thread have none.
    assert call.tolist() == [100, 100, 100, -1, -1, -1]
    assert plain.tolist() == [60, -1, 50, -1, -1, -1]
    assert shapes.tolist() == [1, 2, 1, -1, -1, -1]


def test_runs_beside_others_are_compared_with_none(monkeypatch):
    # The first overlaps all runs that start before it ends; the last one is alone.
    calls = [(7, 100, 500, 50, 1), (8, 150, 200, 50, 1), (9, 300, 400, 50, 1), (8, 500, 600, 50, 1)]
    monkeypatch.setattr(unprofiled_runs, "_calls", calls[::-1])
    call, plain, _ = unprofiled_runs.call_durations(
        np.array([7, 8, 9, 8]), np.array([110, 160, 310, 510])
    )
    assert call.tolist() == [400, 50, 100, 100]
    assert plain.tolist() == [-1, -1, -1, 50]


def test_unprofiled_runs_beside_others_are_no_measure():
    alone = unprofiled_runs.Timer()
    alone.stop()
    outer, inner = unprofiled_runs.Timer(), unprofiled_runs.Timer()
    inner.stop()
    outer.stop()
    after = unprofiled_runs.Timer()
    after.stop()
    assert [t.ran_alone for t in (alone, outer, inner, after)] == [True, False, False, True]
    assert not unprofiled_runs._running_timers


def test_the_lengths_survive_a_file(installed, x, tmp_path):
    session = installed.InferenceSession(models.chain())
    ran(session, {"x": x}, 3)
    prof = profiled(session, {"x": x}, 2)
    prof.save(tmp_path / "p.epprof")
    again = epprof_nb.load(tmp_path / "p.epprof")
    assert again.by_run()["stretch"].tolist() == prof.by_run()["stretch"].tolist()
    assert stretches(again) == stretches(prof)
    assert set(runs(again)["args"].iloc[0]) == {"call_ns", "unprofiled_ns", "shapes"}


def test_a_session_remembers_a_bounded_number_of_runs():
    baseline = unprofiled_runs.UnprofiledBaseline()
    for i in range(10_000):
        baseline.add((i // 10,), i)
    kept = [baseline.median_ns((i,)) for i in range(1000)]
    assert sum(k >= 0 for k in kept) == unprofiled_runs._MAX_INPUT_KEYS


def test_the_median_follows_later_runs():
    baseline = unprofiled_runs.UnprofiledBaseline()
    found = []
    for duration in (0, 5, 5, 9, 9, 9):
        baseline.add("key", duration)
        found.append(baseline.median_ns("key"))
    assert found[1:] == [5, 5, 5, 7, 9]  # the first run sets up the session


def test_once_enough_is_known_most_runs_outside_of_profiles_are_not_timed(installed, x):
    session = installed.InferenceSession(models.chain())
    clock = []
    original = unprofiled_runs.now
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(unprofiled_runs, "now", lambda: clock.append(0) or original())
        ran(session, {"x": x}, 400)
    assert 70 < len(clock) / 2 < 90
