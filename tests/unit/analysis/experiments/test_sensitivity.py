"""Experiments on simulated steps of known truth: measured and replayed sensitivities, savings."""

import math
import threading
from contextlib import contextmanager

import numpy as np
import pytest

import epprof_nb
from epprof_nb.analysis.experiments.design import MAX_DELAYED
from epprof_nb.analysis.experiments.measurements_in_info import Measured
from epprof_nb.core.errors import ExperimentError, ProfileFileError
from epprof_nb.data.schema import HOST_SAMPLES
from epprof_nb.recording.delays import delays_at_op_ends
from epprof_nb.recording.session.host_load import WaitReading
from tests.helpers import tiny
from tests.helpers.simulated.step import LAUNCH, Machine

MS = 1_000_000


def hidden(machine):
    """A stream that nobody waits for as long as the other one."""
    with machine.op("short"):
        machine.launch(3 * MS, 8)
    with machine.op("long"):
        machine.launch(8 * MS)
    machine.synchronize()


def balanced(machine):
    with machine.op("first"):
        machine.launch(8 * MS)
    with machine.op("second"):
        machine.launch(7 * MS, 8)
    machine.synchronize()
    machine.synchronize(8)


def host_bound(machine):
    for _ in range(10):
        with machine.op("layer"):
            machine.host(int(0.7 * MS))
            machine.launch(MS // 5)
    machine.synchronize()


def synchronizing(machine):
    with machine.op("forward"):
        machine.launch(4 * MS)
    machine.synchronize()
    with machine.op("prepare"):
        machine.host(3 * MS)
    with machine.op("backward"):
        machine.launch(2 * MS)
    machine.synchronize()


TRUTH = {
    hidden: {"long": (1, None, 5 * MS), "short": (0, None, 0)},
    balanced: {"first": (1, None, 1 * MS), "second": (0, None, 0)},
    host_bound: {"layer": (0.1, 1, 7.22 * MS)},
    synchronizing: {"forward": (1, None, 4 * MS), "prepare": (None, 1, 3 * MS),
                    "backward": (1, None, 2 * MS)},
}  # fmt: skip
"""Device and host sensitivity, and the saving without the op, by step and op."""


@pytest.mark.parametrize("step", TRUTH)
@pytest.mark.parametrize("seed", range(3))
def test_sensitivities_and_savings_are_those_of_the_step(step, seed):
    prof, said = Machine(seed, scatter=20_000).experiment(step, seed=seed)
    found = prof.sensitivity().set_index("name")
    assert set(found.index) == set(TRUTH[step])
    for name, (device, host, saving) in TRUTH[step].items():
        row = found.loc[name]
        for side, true in (("device", device), ("host", host)):
            if true is not None:
                assert row[f"{side}_sensitivity"] == pytest.approx(true, abs=0.15)
                assert row[f"{side}_sensitivity_low"] - 0.1 <= true
                assert true <= row[f"{side}_sensitivity_high"] + 0.1
        assert row["saving_low_ns"] <= saving + 3 * LAUNCH * 10
        assert saving <= row["saving_high_ns"] + 0.05 * MS
        assert row["saving_if_free_ns"] == pytest.approx(saving, abs=0.05 * MS)
        assert row["agrees"]
    assert len(said) == 1
    assert "40 repeats measure" in said[0]


def test_waits_for_a_core_after_a_delay_are_not_its_effect():
    prof, _ = Machine(scatter=20_000, busy=0.5).experiment(synchronizing, 80)
    row = prof.sensitivity().set_index("name").loc["prepare"]
    assert row["host_sensitivity"] == pytest.approx(1, abs=0.1)
    for part in prof.info["experiment"]["rounds"]:
        del part["waited_ns"]  # as in older files
    row = prof.sensitivity().set_index("name").loc["prepare"]
    assert row["host_sensitivity"] == pytest.approx(1.5, abs=0.3)


def test_repeats_that_differ_by_waits_for_a_core_are_alike(monkeypatch):
    busy = Machine(scatter=20_000, busy=1)
    (sentence,) = busy.experiment(synchronizing)[1]
    assert "40 repeats measure 3 sensitivities" in sentence
    monkeypatch.setattr(busy, "waits", lambda: WaitReading(0, {}))  # unknown
    with pytest.raises(ExperimentError, match="the wall time of repeats scatters by"):
        busy.experiment(synchronizing)


def test_the_replay_says_what_a_slope_does_not():
    """The first of two chains of nearly one length has the slope 1 and saves next to nothing."""

    def step(machine):
        with machine.op("first"):
            machine.launch(8 * MS)
        with machine.op("second"):
            machine.launch(int(7.5 * MS), 8)
        machine.synchronize()
        machine.synchronize(8)

    prof, _ = Machine(scatter=20_000).experiment(step)
    row = prof.sensitivity().set_index("name").loc["first"]
    assert row["device_sensitivity"] > 0.9
    assert row["saving_if_free_ns"] == pytest.approx(0.5 * MS, abs=0.02 * MS)
    assert row["saving_high_ns"] > 7 * MS


def test_chains_of_which_now_the_one_and_now_the_other_is_longer_agree():
    """Each is followed in half of the repeats, and one of them in the recorded one."""

    def step(machine):
        for name, stream in (("first", 7), ("second", 8)):
            with machine.op(name):
                machine.launch(8 * MS + int(machine.random.normal(0, 0.2 * MS)), stream)
        machine.synchronize()
        machine.synchronize(8)

    far = 0
    for seed in range(4):
        found = Machine(seed).experiment(step, 160, seed=seed)[0].sensitivity()
        assert found["agrees"].all()
        replayed = found["device_replayed"]
        far += (replayed > found["device_sensitivity_high"] + 0.1).sum()
        far += (replayed < found["device_sensitivity_low"] - 0.1).sum()
    assert far > 0


def test_ops_of_coroutines_that_take_turns_have_measured_slopes_only():
    prof, _ = Machine(scatter=20_000).experiment(synchronizing)
    ops = prof.tables["ops"]
    is_op = np.isin(ops.names("name").to_list(), ["prepare", "backward"])
    # Suspended from the one into the other.
    prof.tables["ops"] = ops.replace(
        suspended_ns=np.where(is_op, 10, 0),
        start_ns=np.where(is_op, ops["start_ns"][is_op].min(), ops["start_ns"]),
    )
    found = prof.sensitivity().set_index("name")
    assert found["saving_if_free_ns"].isna().to_dict() == {
        "forward": False, "prepare": True, "backward": True
    }  # fmt: skip
    assert found.loc["prepare", "host_sensitivity"] > 0.8
    assert np.isnan(found.loc["prepare", "host_replayed"])
    assert "took turns" in found.loc["prepare", "note"]


def test_slopes_say_what_ends_idle_time():
    """A limiter takes up the delays of the work before it; a sleep does not."""
    work = [(4 * MS * i, 4 * MS * i + 2 * MS) for i in range(3)]

    def step(machine, limits):
        begun = machine.now
        for number in range(3):
            with machine.op("work"):
                machine.host(2 * MS)
            with machine.op("idle"):
                until = begun + 4 * MS * (number + 1)
                machine.now = max(machine.now, until) if limits else machine.now + 2 * MS

    for limits in (True, False):
        prof, _ = Machine(scatter=10_000).experiment(lambda machine, on=limits: step(machine, on))
        prof.tables["host_samples"] = tiny.table(HOST_SAMPLES, [
            {"start_ns": time, "thread_id": 1, "interval_ns": MS // 10,
             "processor_ns": sum(max(min(time, end) - start, 0) for start, end in work)}
            for time in range(0, 12 * MS, MS // 10)
        ])  # fmt: skip
        row = prof.sensitivity().set_index("name").loc["work"]
        assert row["agrees"]
        assert row["host_sensitivity"] == pytest.approx(0 if limits else 1, abs=0.1)
        assert row["host_replayed"] == pytest.approx(0 if limits else 1, abs=0.01)
        assert row["saving_if_free_ns"] == pytest.approx(0 if limits else 6 * MS, abs=MS // 10)
        assert row["saving_low_ns"] < MS // 10 or not limits


def test_an_op_that_only_waits_saves_its_wait():
    """Its time is short, but without it the host prepares the next work meanwhile."""

    def step(machine):
        for _ in range(4):
            machine.launch(2 * MS)
            with machine.op("read"):
                machine.host(int(0.1 * MS))
                machine.synchronize()
            with machine.op("prepare"):
                machine.host(2 * MS)
        machine.synchronize()

    row = Machine(scatter=20_000).experiment(step)[0].sensitivity().set_index("name").loc["read"]
    for column in ("saving_low_ns", "saving_if_free_ns", "saving_high_ns"):
        assert row[column] == pytest.approx(8 * MS, abs=0.5 * MS)


def test_the_replay_delays_the_host_at_the_ends_of_ops():
    """The time of `product` is before its launch, where it counts; its end is hidden."""

    def step(machine):
        with machine.op("product"):
            machine.host(MS)
            machine.launch(6 * MS)
            machine.host(int(0.2 * MS))
        with machine.op("read"):
            machine.host(int(0.2 * MS))
            machine.synchronize()

    found = Machine(scatter=20_000).experiment(step)[0].sensitivity().set_index("name")
    assert found["host_replayed"].round(2).to_dict() == {"product": 0.0, "read": 1.0}
    assert found["agrees"].all()
    row = found.loc["product"]
    assert row["saving_low_ns"] <= row["saving_if_free_ns"] <= row["saving_high_ns"]
    assert row["saving_if_free_ns"] == pytest.approx(7 * MS, abs=0.3 * MS)


def test_witnesses_that_disagree_are_named():
    """Delays that delay nothing, as if the work were hidden; the replay sees it on the path."""
    prof, _ = Machine(scatter=20_000, dead=True).experiment(hidden)
    row = prof.sensitivity().set_index("name").loc["long"]
    assert not row["agrees"]
    assert "replayed device: 1.00" in row["note"]
    # The estimate is the lower one; the interval has both.
    assert row["saving_low_ns"] <= row["saving_if_free_ns"] < 4 * MS
    assert row["saving_high_ns"] >= 8 * MS


def test_a_recorded_repeat_that_is_no_usual_one_saves_nothing():
    def slow(machine):
        hidden(machine)
        machine.host(40 * MS)

    with pytest.raises(ExperimentError, match=r"repeat took 48.0 ms, a usual one takes 8.0"):
        Machine(scatter=20_000).experiment(hidden, recorded=slow)
    with pytest.raises(ExperimentError, match="with warm-ups if the first runs are slower"):
        Machine(scatter=20_000).experiment(hidden, recorded=slow)
    prof = Machine().recorded(slow)
    prof.info["experiment"] = Machine(scatter=20_000).experiment(hidden)[0].info["experiment"]
    found = prof.sensitivity().set_index("name")
    assert found.loc["long", "device_sensitivity"] > 0.9
    assert found["saving_if_free_ns"].isna().all()
    assert "no saving: the recorded repeat took" in found.loc["long", "note"]


def test_ops_that_are_too_short_are_named_as_the_cause():
    def step(machine, each=3_000):
        for _ in range(200):
            with machine.op("tiny"):
                machine.host(each)
            with machine.op("rest"):
                machine.host(each)

    with pytest.raises(ExperimentError, match=r"named ops 400 times, mostly 'tiny'.*longer parts"):
        Machine(scatter=2_000).experiment(step, recorded=lambda machine: step(machine, 6_000))


def test_the_repeats_are_delayed_as_designed():
    prof, _ = Machine(scatter=20_000).experiment(host_bound)
    measured = Measured.from_info(prof.info)
    (part,) = measured.rounds
    assert measured.repeats == 40
    for levels, delays in zip(part.levels, part.delay_ns, strict=True):
        for factor, level, ns in zip(part.factors, levels, delays, strict=True):
            assert factor.op == "layer"
            wanted = 0.1 * prof.info["wall_ns"] / len(part.factors)
            assert ns == pytest.approx(wanted if level > 0 else 0, rel=0.05)


@pytest.mark.parametrize("computes", [True, False])
def test_delays_of_code_keep_the_gil_if_it_computes(monkeypatch, computes):
    """The code of the simulated machine takes no time of a processor."""
    if computes:
        monkeypatch.setattr(delays_at_op_ends.time, "thread_time_ns", lambda: machine.now)
    machine = Machine(scatter=20_000)
    machine.experiment(host_bound)
    assert set(machine.kept_gil[-40:]) == {computes}


@contextmanager
def on_two_threads(machine, name):
    """An op that the simulated host and another thread have open at once, for the same time."""
    begun, may_end = threading.Event(), threading.Event()

    def run():
        with epprof_nb.op(name):
            begun.set()
            may_end.wait(60)

    other = threading.Thread(target=run)
    other.start()
    begun.wait(60)
    with machine.op(name):
        yield
    may_end.set()
    other.join()
    machine.number += 1
    machine.ops.append({**machine.ops[-1], "op_id": machine.number, "thread_id": 2})


def computing(machine):
    with on_two_threads(machine, "both"):
        machine.host(8 * MS)
    with machine.op("rest"):
        machine.host(2 * MS)


@pytest.mark.parametrize(("share", "computes"), [(0.4, True), (0.2, False)])
def test_threads_that_compute_at_once_share_the_gil(monkeypatch, share, computes):
    """Each waits for the GIL while the other one has it."""
    monkeypatch.setattr(delays_at_op_ends.time, "thread_time_ns", lambda: int(share * machine.now))
    machine = Machine(scatter=20_000)
    prof, _ = machine.experiment(computing)
    rounds = prof.info["experiment"]["rounds"]
    assert ["both", "host"] in rounds[0]["factors"]
    # `rest` computes less than half of its time.
    assert set(machine.kept_gil[-100:]) == {computes, False}


def test_an_op_that_is_open_on_two_threads_is_measured():
    machine = Machine(scatter=20_000)
    prof, _ = machine.experiment(computing)
    rows = prof.sensitivity().set_index("name")
    row = rows.loc["both"]
    assert row["executions"] == 2
    assert row["host_share"] == pytest.approx(1.6, abs=0.05)
    # A delay of either thread is one of the other, too, as they end together.
    assert row["host_sensitivity"] == pytest.approx(1, abs=0.1)
    assert rows["agrees"].all()
    assert row["saving_if_free_ns"] == pytest.approx(8 * MS, abs=0.3 * MS)
    assert row["saving_low_ns"] <= 8 * MS <= row["saving_high_ns"] <= prof.info["wall_ns"]
    assert rows.loc["rest", "saving_if_free_ns"] == pytest.approx(2 * MS, abs=0.3 * MS)


def test_more_repeats_measure_more_ops():
    def step(machine):
        for number in range(9):
            with machine.op(f"op {number}"):
                machine.launch(MS)
            machine.synchronize()

    for repeats, rounds in ((46, 1), (160, 2)):
        prof, said = Machine(scatter=40_000).experiment(step, repeats)
        measured = Measured.from_info(prof.info)
        assert len(measured.rounds) >= rounds
        if repeats == 46:
            assert "40 of the 46 repeats measure" in said[0]
            needed = int(said[0].split("--experiment ")[1].split(" would measure all 9")[0])
            _, said = Machine(scatter=40_000).experiment(step, needed)
            assert "measure 9 sensitivities" in said[0]
        factors = [factor for part in measured.rounds for factor in part.factors]
        assert len(set(factors)) == len(factors)
        known = prof.sensitivity()["device_sensitivity"].notna().sum()
        assert known == len(factors)


def scattering(machine):
    hidden(machine)
    machine.host(int(machine.random.exponential(4 * MS)))


def growing(machine):
    hidden(machine)
    machine.host(machine.steps * MS)


def nameless(machine):
    machine.launch(MS)
    machine.synchronize()


def brief(machine):
    with machine.op("op"):
        machine.launch(20_000)
    machine.synchronize()


def used_up(machine):
    for _ in range(3 if machine.steps < 1 else 0):
        with machine.op("batch"):
            machine.launch(MS)
    machine.synchronize()


def tiny_op(machine):
    with machine.op("op"):
        machine.launch(10_000)
    machine.launch(8 * MS)
    machine.synchronize()


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (scattering, r"scatters by .* It would take \d+ \(--experiment \d+\)"),
        (growing, "slower within 10 of them. Repeats must be alike"),
        (nameless, "has no named op to delay"),
        (brief, "a delay of 10.0 µs would be more than 10 %"),
        (used_up, "'batch' ran 3 times in the recorded repeat and 0 times in a later one"),
        (tiny_op, "none of the 1 named op takes 2 %"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_the_reason(step, reason):
    with pytest.raises(ExperimentError, match=reason):
        Machine().experiment(step)


def test_an_op_with_several_streams_is_not_delayed_on_the_device():
    def step(machine):
        with machine.op("both"):
            machine.launch(4 * MS)
            machine.launch(4 * MS, 8)
            machine.host(5 * MS)
        machine.synchronize()

    row = Machine(scatter=10_000).experiment(step)[0].sensitivity().iloc[0]
    assert math.isnan(row["device_sensitivity"])
    assert row["host_sensitivity"] == pytest.approx(1, abs=0.2)
    assert "device work not delayed: it launches to 2 streams" in row["note"]


@pytest.mark.parametrize("is_last", [True, False])
def test_an_op_that_waits_for_its_own_work_is_not_delayed_on_the_device(is_last):
    """The delay would come after the wait, and hide under what follows."""

    def step(machine):
        for _ in range(4):
            with machine.op("waits"):
                machine.launch(MS)
                machine.synchronize()
                if not is_last:
                    machine.launch(MS)
            with machine.op("after"):
                machine.host(2 * MS)
        machine.synchronize()

    found = Machine(scatter=10_000).experiment(step)[0].sensitivity().set_index("name")
    row = found.loc["waits"]
    assert ("device work not delayed: its code waits for it" in row["note"]) == is_last
    assert math.isnan(row["device_sensitivity"]) == is_last
    if is_last:
        assert row["saving_if_free_ns"] == pytest.approx(4 * MS, abs=0.2 * MS)


def test_recursion_and_many_executions():
    def descend(machine, depth):
        with machine.op("recursive"):
            machine.launch(MS // 10)
            if depth:
                descend(machine, depth - 1)

    def step(machine):
        for _ in range(20):
            descend(machine, 3)
        machine.synchronize()

    prof, _ = Machine(scatter=20_000).experiment(step)
    row = prof.sensitivity().iloc[0]
    assert row["executions"] == 80
    assert row["device_share"] == pytest.approx(1, abs=0.01)
    assert row["device_sensitivity"] == pytest.approx(1, abs=0.15)


def test_a_file_keeps_the_experiment(tmp_path):
    prof, _ = Machine(scatter=20_000).experiment(hidden)
    prof.save(tmp_path / "run.epprof")
    loaded = epprof_nb.load(tmp_path / "run.epprof")
    assert loaded.sensitivity().equals(prof.sensitivity())


DAMAGE = {
    "a level of 2": lambda part: part["levels"][0].__setitem__(0, 2),
    "a missing level": lambda part: part["levels"][0].pop(),
    "a missing wall time": lambda part: part["wall_ns"].pop(),
    "another side": lambda part: part["factors"][0].__setitem__(1, "top"),
    "half a factor": lambda part: part["factors"][0].pop(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_rounds_are_left_out(damage):
    prof, _ = Machine(scatter=20_000).experiment(hidden)
    DAMAGE[damage](prof.info["experiment"]["rounds"][0])
    assert prof.sensitivity()["device_sensitivity"].isna().all()


@pytest.mark.parametrize("steps", [0, -1, "x"])
def test_a_damaged_number_of_steps_is_refused_or_harmless(tmp_path, steps):
    prof, _ = Machine(scatter=20_000).experiment(hidden)
    prof.info["experiment"]["steps"] = steps
    prof.save(tmp_path / "run.epprof")
    if steps == 0:
        assert len(epprof_nb.load(tmp_path / "run.epprof").sensitivity())
        return
    with pytest.raises(ProfileFileError, match="steps"):
        epprof_nb.load(tmp_path / "run.epprof")


def test_executions_that_launch_nothing_have_no_delay_on_the_device():
    def step(machine):
        for number in range(40):
            with machine.op("layer"):
                if number % 10 == 3:
                    machine.launch(MS)
        machine.synchronize()

    prof, _ = Machine(scatter=2_000).experiment(step)
    (part,) = prof.info["experiment"]["rounds"]
    assert part["factors"] == [["layer", "device"]]
    wall_ns = np.median(prof.info["experiment"]["base_ns"])
    on = [
        delay
        for (delay,), (level,) in zip(part["delay_ns"], part["levels"], strict=True)
        if level > 0
    ]
    assert on == pytest.approx([MAX_DELAYED * wall_ns] * len(on), rel=1e-3)
