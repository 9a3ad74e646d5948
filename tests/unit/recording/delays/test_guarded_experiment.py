"""Experiments around the user's code: nothing that fails in them reaches it."""

import io

import pytest

from epprof_nb.recording.delays import guarded_experiment
from epprof_nb.recording.delays.guarded_experiment import GuardedExperiment
from epprof_nb.util import progress_bar
from tests.helpers.simulated.step import Machine

MS = 1_000_000


def step(machine):
    with machine.op("layer"):
        machine.launch(5 * MS)
    machine.synchronize()


@pytest.fixture
def machine(monkeypatch):
    machine = Machine(scatter=20_000)
    monkeypatch.setattr(guarded_experiment, "device_of", lambda _: machine)
    make = guarded_experiment.Experiment
    monkeypatch.setattr(
        guarded_experiment,
        "Experiment",
        lambda *args, **options: make(
            *args,
            **options,
            seed=0,
            clock=lambda: machine.now,
            spin=machine.spin,
            waits=machine.waits,
        ),
    )
    return machine


def repeats(machine, experiment, stop=1_000):
    done = 0
    while done < stop and experiment.next():
        machine.run(step)
        done += 1
    return done


def test_the_profile_gets_the_result(machine):
    said = []
    experiment = GuardedExperiment(40, print, tell=said.append)
    assert not experiment.has_begun
    prof = machine.recorded(step)
    experiment.begin(prof)
    assert experiment.has_begun
    assert repeats(machine, experiment) == 51
    assert not experiment.next()
    assert prof.info["experiment"]["refused"] == ""
    assert prof.sensitivity()["device_sensitivity"].item() == pytest.approx(1, abs=0.1)
    # 51 repeats, and the last run without delays.
    start = "Experiment: the code runs up to 52 times more, for about "
    assert said[0].startswith(start)
    assert said[1:] == [prof.info["experiment"]["plan"]]


@pytest.mark.parametrize("stop", [0, 1, 12, 30])
def test_what_was_measured_until_the_end_is_kept(machine, stop):
    experiment = GuardedExperiment(40, print)
    prof = machine.recorded(step)
    experiment.begin(prof)
    assert repeats(machine, experiment, stop) == stop
    experiment.end()
    experiment.end()
    found = prof.info["experiment"]
    walls = sum(len(part["wall_ns"]) for part in found["rounds"])
    assert walls == max(stop - 12, 0)
    when = f"after {stop - 12} of 40 repeats with" if stop >= 12 else "before the repeats with"
    assert found["refused"] == f"the code ended {when} delays."


def test_a_script_that_ends_too_early_says_how_many_steps_it_takes(machine):
    experiment = GuardedExperiment(16, print, in_steps=True)
    prof = machine.recorded(step)
    experiment.begin(prof)
    repeats(machine, experiment, 5)
    experiment.end()
    assert prof.info["experiment"]["refused"] == (
        "the code ended before the repeats with delays. It takes 27 steps after the recorded ones."
    )
    again = GuardedExperiment(16, print, in_steps=True)
    again.begin(prof)
    assert repeats(machine, again) == 27


def test_a_script_has_no_warm_ups(machine):
    def slow(machine):
        with machine.op("layer"):
            machine.launch(20 * MS)
        machine.synchronize()

    said = []
    experiment = GuardedExperiment(16, said.append, in_steps=True)
    experiment.begin(machine.recorded(slow))
    repeats(machine, experiment)
    (reason,) = said
    assert "the recorded repeat took" in reason
    assert "such as --steps 10:20" in reason
    assert "warm-ups" not in reason


@pytest.mark.parametrize(
    ("error", "why"),
    [("KeyboardInterrupt", "it was interrupted"), ("OSError", "OSError ended the code")],
)
def test_an_early_end_says_why(machine, error, why):
    experiment = GuardedExperiment(40, print)
    prof = machine.recorded(step)
    experiment.begin(prof)
    repeats(machine, experiment, 20)
    experiment.end(error)
    assert prof.info["experiment"]["refused"] == f"{why} after 8 of 40 repeats with delays."


def test_the_progress_bar_is_not_shown_before_its_time(machine, monkeypatch):
    """Its end clears what it knows to have shown."""
    terminal = io.StringIO()
    monkeypatch.setattr(progress_bar, "_screen", lambda: terminal)
    monkeypatch.setattr(progress_bar, "_DELAY_S", 1e9)
    experiment = GuardedExperiment(40, print)
    experiment.begin(machine.recorded(step))
    repeats(machine, experiment)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("ms", [1, 1_000])
def test_how_long_it_takes_is_shown_before_a_long_experiment(machine, monkeypatch, ms):
    def step(machine):
        with machine.op("layer"):
            machine.launch(ms * MS)
        machine.synchronize()

    terminal = io.StringIO()
    monkeypatch.setattr(progress_bar, "_screen", lambda: terminal)
    experiment = GuardedExperiment(40, print)
    experiment.begin(machine.recorded(step))
    shown = "the code runs up to 52 times more, for about 52.0 s; 11 repeats without delays first: "
    assert (shown in terminal.getvalue()) == (ms == 1_000)
    experiment.end()


def test_an_error_of_the_experiment_is_said_and_ends_it(machine, monkeypatch):
    said, machine.scatter = [], 0
    monkeypatch.setattr(machine, "wait", lambda: 1 / 0)
    experiment = GuardedExperiment(40, said.append)
    prof = Machine().recorded(step)
    experiment.begin(prof)
    assert repeats(machine, experiment) == 1
    assert said == ["no experiment: ZeroDivisionError: division by zero"]
    assert "division by zero" in prof.info["experiment"]["refused"]


def test_a_device_that_cannot_be_delayed():
    said = []
    prof = Machine().recorded(step)  # of a GPU
    experiment = GuardedExperiment(40, said.append)
    experiment.begin(prof)
    assert experiment.has_begun
    assert not experiment.next()
    assert "the streams of the code are not known" in said[0]
    assert prof.info["experiment"]["asked"] == 40
    assert "the streams of the code are not known" in prof.sensitivity()["note"].item()


def test_streams_are_followed_until_no_delay_can_be_launched(machine, monkeypatch):
    done = []
    monkeypatch.setattr(guarded_experiment._native, "follow_streams", done.append)
    monkeypatch.setattr(machine, "end", lambda: done.append("end"))
    experiment = GuardedExperiment(40, print)
    assert done == []  # the code may never run
    experiment.prepare()
    experiment.begin(machine.recorded(step))
    repeats(machine, experiment, 20)
    assert done[0] is True
    assert False not in done
    experiment.end()
    assert done[-2:] == ["end", False]
