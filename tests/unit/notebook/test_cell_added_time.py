"""Added time of runs that other processes kept waiting for a core."""

from types import SimpleNamespace

import pytest

from epprof_nb.analysis.added_time.measured_time import VARY
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.critical_path.profiler_costs import NOT_TIMED
from epprof_nb.analysis.summary.headline import headline_of
from epprof_nb.notebook import cell_added_time
from epprof_nb.notebook.cell_added_time import RunTimes, add_time
from epprof_nb.recording.session.host_load import WaitReading
from tests.helpers.tiny import kernel, line, op, profile

MS = 1_000_000
REQUEST = SimpleNamespace(repeat=5, options=SimpleNamespace(time_limit_s=None))
BUSY = {"own_cores": 1.0, "waiting": 0.5, "other_cores": 1.0}
"""The process waited for a core, and others used it."""


@pytest.fixture
def runs(monkeypatch):
    """Make the times of runs that used a core for some ms, and waited for one for others."""
    now, reading = [0], [WaitReading(0, {"1": 0})]
    monkeypatch.setattr(cell_added_time, "read_waits", lambda: reading[0])
    monkeypatch.setattr(cell_added_time, "_native", SimpleNamespace(now_ns=lambda: now[0]))

    def made(*parts):
        times = RunTimes()
        times.mark()
        for used, waited in parts:
            now[0] += (used + waited) * MS
            before = reading[0]
            waits = {"1": before.waits_ns["1"] + waited * MS}
            reading[0] = WaitReading(before.cpu_ns + used * MS, waits)
            times.mark()
        return times

    return made


def profiled(repeats, **more):
    ends = [sum(repeats.wall_ns()[: n + 1]) for n in range(5)]
    bounds = [[begin, end] for begin, end in zip([0, *ends], ends, strict=False)]
    info = {"wall_ns": ends[-1], "code_ns": ends[-1], "repeats": bounds, "load": BUSY}
    return profile(info=info, **more)


WAITS = [(3, 40), (0, 7), (25, 1), (0, 0), (11, 30)]


def test_waits_for_other_processes_do_not_count(runs):
    warmups = runs(*((100, first) for first, _ in WAITS))
    repeats = runs(*((120, second) for _, second in WAITS))
    prof = profiled(repeats)
    add_time(prof, REQUEST, warmups, repeats)
    wall = prof.info["wall_ns"]
    assert prof.info["added_ns"]["total"] == pytest.approx(wall * (1 - 1 / 1.2), rel=1e-6)


def test_without_readings_such_runs_say_nothing(runs):
    warmups = runs(*((100, first) for first, _ in WAITS))
    repeats = runs(*((120, second) for _, second in WAITS))
    prof = profiled(repeats)
    add_time(prof, REQUEST, warmups, RunTimes())
    assert prof.info["added_ns"] == {"reason": VARY}


def test_runs_that_say_nothing_leave_the_estimate(runs):
    warmups = runs(*((100, first) for first, _ in WAITS))
    repeats = runs(*((120, second) for _, second in WAITS))
    prof = profiled(repeats, ops=[line(1, 1, 0, 500 * MS)])
    prof.info |= {"recording_costs": {"statements": 20 * MS}, "thread_id": 1}
    add_time(prof, REQUEST, warmups, RunTimes())
    added = prof.info["added_ns"]
    assert (added["reason"], added["estimated"]) == (VARY, True)
    assert added["parts"] == {"statements": added["total"]}
    headline = headline_of(ProfileIndex(prof))
    assert "profiling added an estimated" in headline.line
    assert f"could not be measured: {VARY}" in headline.overhead_note


def test_a_plain_cell_says_why_there_is_no_estimate():
    prof = profile([op(1, "mm", 0, 9, category="operator")], info={"wall_ns": 9})
    prof.info["recording_costs"] = {"ops": 3}
    add_time(prof, REQUEST, RunTimes(), RunTimes())
    (reason,) = prof.info["added_ns"].values()
    headline = headline_of(ProfileIndex(prof))
    assert reason.startswith("frameworks recorded")
    assert reason in headline.overhead_note
    assert reason not in headline.line


def test_code_of_which_nothing_was_timed_has_the_reason_but_no_words_in_the_line(runs):
    repeats = runs(*[(100, 0)] * 5)
    prof = profiled(repeats)
    add_time(prof, REQUEST, RunTimes(), RunTimes())
    assert prof.info["added_ns"] == {"reason": NOT_TIMED}
    headline = headline_of(ProfileIndex(prof))
    assert NOT_TIMED in headline.overhead_note
    assert "profiling added" not in headline.line


def test_only_work_of_a_device_goes_on_after_the_code(runs):
    warmups, repeats = runs(*[(100, 0)] * 5), runs(*[(120, 0)] * 5)
    for end, told in ((600, "total"), (610, "reason")):
        prof = profiled(repeats, activities=[kernel(20, end * MS)])
        prof.info["wall_ns"] += 50 * MS  # until the recording had ended
        add_time(prof, REQUEST, warmups, repeats)
        assert told in prof.info["added_ns"]


def test_waits_count_where_a_gpu_may_have_worked_meanwhile(runs):
    warmups = runs(*((100, first) for first, _ in WAITS))
    repeats = runs(*((120, second) for _, second in WAITS))
    prof = profiled(repeats, activities=[kernel(20, 30)])
    prof.info["devices"] = [{"device_id": 0, "name": "H200", "kind": "gpu"}]
    add_time(prof, REQUEST, warmups, repeats)
    assert prof.info["added_ns"] == {"reason": VARY}


@pytest.mark.parametrize(("length", "expected"), [(9, False), (10, True)])
def test_waits_are_read_between_long_runs_only(length, expected, runs):
    assert runs((50, 0), (length, 0)).are_long() == expected
    assert not RunTimes().are_long()
