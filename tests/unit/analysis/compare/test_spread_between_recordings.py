"""The spread between recordings of the same code: assumed, calibrated or measured by several."""

import json
import math
import re

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import epprof_nb
from epprof_nb import compare
from epprof_nb.analysis.compare.recordings import Recordings
from epprof_nb.analysis.compare.significance import ratios
from epprof_nb.analysis.compare.spread_between_recordings import measure_spread
from epprof_nb.cli import main
from epprof_nb.files.measured_spreads import load_spread, save_spread, spread_path
from epprof_nb.util.format import percent
from epprof_nb.util.machine_id import machine_id
from tests.helpers.repeated import repeated
from tests.helpers.tiny import rows

MS = 1_000_000
TIMES = {"load(x)": MS, "y = model(x)": 10 * MS, "y.sum()": 2 * MS}
CALIBRATED = {"total": 0.03, "device": 0.02, "host": 0.04, "recordings": 12, "date": "2026-01-02"}


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def vary(spread, seed, **more):
    """A recording on this machine, whose speed differs randomly from other recordings."""
    factor = np.exp(spread * np.random.default_rng(seed).standard_normal())
    times = {name: round(time * factor) for name, time in TIMES.items()}
    return repeated(times, noise=0.001, seed=seed, **{"machine": machine_id()} | more)


def test_without_a_measurement_the_spread_is_assumed_and_said_to_be():
    result = compare(vary(0, 1), vary(0, 2))
    assert "may differ by 1.0 % (assumed; `epprof calibrate` measures it)" in result.reason


def test_a_calibrated_spread_replaces_the_assumed_one():
    slower = {name: round(time * 1.04) for name, time in TIMES.items()}
    old, new = vary(0, 1), repeated(slower, noise=0.001, seed=2, machine=machine_id())
    assert compare(old, new).verdict == "slower"
    save_spread(machine_id(), "GPU X", CALIBRATED)
    result = compare(old, new)
    assert result.verdict == "no difference found"
    assert "differ by 3.0 % (`epprof calibrate` measured 12 on 2026-01-02)" in (result.reason)
    # Each kind of time has its own spread: measured device times vary less.
    wide = rows(result.ops)["y.sum()"]
    save_spread(machine_id(), "GPU X", CALIBRATED | {"device": 0.001})
    narrow = rows(compare(old, new).ops)["y.sum()"]
    assert wide["verdict"] == "no difference found"
    assert narrow["verdict"] == "slower"
    # Few recordings are less certain of it.
    save_spread(machine_id(), "GPU X", CALIBRATED | {"recordings": 3})
    assert compare(old, new).change_high > result.change_high


@pytest.mark.parametrize("elsewhere", [{"machine": "another"}, {"machine": None}])
def test_a_calibration_counts_for_its_own_machine_only(elsewhere):
    save_spread(machine_id(), "GPU X", CALIBRATED)
    others = [repeated(TIMES, noise=0.001, seed=seed, **elsewhere) for seed in range(2)]
    assert "assumed" in compare(*others).reason
    assert "assumed" in compare(vary(0, 1), others[0]).reason
    devices = [{"device_id": 0, "name": "GPU Y", "kind": "gpu"}]
    assert "assumed" in compare(*(vary(0, i, devices=devices) for i in range(2))).reason


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"MACHINE": []}', b'{"MACHINE": {"GPU X": {"total": "a"}}}', b"\xff"]
    + [
        json.dumps({"MACHINE": {"GPU X": CALIBRATED | change}}).encode()
        for change in (
            {"total": math.nan}, {"host": -0.1}, {"device": 1e9}, {"recordings": 0}, {"date": 3},
            {"recordings": 2.5},
        )
    ],
)  # fmt: skip
def test_a_damaged_cache_counts_as_none_and_is_replaced(content):
    path = spread_path()
    path.parent.mkdir(parents=True)
    path.write_bytes(content.replace(b"MACHINE", machine_id().encode()))
    assert load_spread(machine_id(), "GPU X") is None
    assert "assumed" in compare(vary(0, 1), vary(0, 2)).reason
    save_spread(machine_id(), "GPU X", CALIBRATED)
    save_spread("another", "GPU Y", CALIBRATED | {"total": 0.5})
    assert load_spread(machine_id(), "GPU X") == CALIBRATED


def test_the_machine_is_a_hash_that_redaction_removes():
    with epprof_nb.profile() as prof:
        pass
    assert prof.info["machine"] == machine_id()
    assert re.fullmatch("[0-9a-f]{16}", machine_id())
    shared = prof.redacted("hosts")
    assert machine_id() not in json.dumps(shared.info)
    assert (
        "assumed"
        in compare(*(vary(0, i, machine=shared.info.get("machine")) for i in (1, 2))).reason
    )


def test_three_recordings_per_side_tell_their_spread():
    steady = [[vary(0.001, 10 * side + i) for i in range(3)] for side in range(2)]
    result = compare(*steady)
    assert result.verdict == "no difference found"
    assert "as each side shows" in result.reason
    # Smaller than the assumed spread of one recording.
    assert result.change_high - result.change_low < 0.02
    unsteady = [[vary(0.05, 10 * side + i) for i in range(3)] for side in range(2)]
    wide = compare(*unsteady)
    assert wide.change_high - wide.change_low > 0.05


def test_the_spread_of_recordings_is_measured():
    times = np.exp(0.03 * np.random.default_rng(0).standard_normal(40))
    recordings = [
        repeated({n: round(t * factor) for n, t in TIMES.items()}, noise=0.001, seed=i)
        for i, factor in enumerate(times)
    ]
    spread = measure_spread(Recordings(recordings), "2026-01-02")
    actual = np.log(times).std(ddof=1)
    assert spread.total == pytest.approx(actual, rel=0.1)
    assert spread.device == pytest.approx(actual, rel=0.1)
    assert spread.freedom == 39


def single_runs(count, factor=1.0, *, side=None, speed=None):
    runs = []
    for i in range(count):
        times = {
            n: round(t * factor * (1 if speed is None else speed[i])) for n, t in TIMES.items()
        }
        info = {} if side is None else {"alternated": {"recording": f"{i:03}", "side": side}}
        runs.append(repeated(times, repeats=1, noise=0.01, seed=100 * (side or 0) + i, **info))
    return runs


def test_runs_without_repeats_count_as_repeats_if_they_are_many():
    few = compare(single_runs(9), single_runs(9, 1.1))
    assert few.verdict == "cannot be compared"
    result = compare(single_runs(12), single_runs(12, 1.1, side=None))
    assert result.verdict == "slower"
    assert rows(result.ops)["y = model(x)"]["verdict"] == "slower"
    assert rows(result.kernels)["kernel of y = model(x)"]["verdict"] == "slower"


def test_runs_in_turn_share_the_drift():
    speed = np.linspace(1, 1.6, 12)
    sides = [single_runs(12, f, side=s, speed=speed) for s, f in enumerate((1, 1.05))]
    assert compare(*sides).verdict == "slower"
    # The order of the list does not matter: recordings know what they alternated with.
    assert compare(sides[0][::-1], sides[1]).reason == compare(*sides).reason
    for run in (*sides[0], *sides[1]):
        del run.info["alternated"]
    assert compare(*sides).verdict == "cannot tell"


def test_what_precedes_the_first_step_of_a_script_is_not_compared():
    def steps(preparation, **more):
        speed = np.array([preparation, *[1.0] * 15])
        return repeated(TIMES, repeats=16, speed=speed, first_step=0, **more)

    result = compare(steps(1), steps(100, seed=1))
    assert set(result.ops["verdict"]) == {"no difference found"}
    assert result.verdict == "no difference found"
    nine = repeated(TIMES, repeats=10, first_step=0)
    assert "9 repeats" in compare(nine, nine).reason


@given(
    st.integers(1, 5),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from([3.0, math.inf]),
    st.integers(0, 2**32 - 1),
    st.floats(0.001, 0.2),
)
@settings(max_examples=30, deadline=None)
def test_ratios_mirror_each_other(recordings, quantities, paired, freedom, seed, noise):
    rng = np.random.default_rng(seed)

    def side():
        shape = (recordings, quantities, 12)
        return list(1e5 * np.exp(noise * rng.standard_normal(shape)))

    old, new, floor = side(), side(), np.full(quantities, 0.01)
    forth = ratios(old, new, floor, freedom=freedom, paired=paired)
    back = ratios(new, old, floor, freedom=freedom, paired=paired)
    np.testing.assert_allclose(forth.low, 1 / back.high, rtol=1e-9)
    np.testing.assert_allclose(forth.ratio, 1 / back.ratio, rtol=1e-9)
    np.testing.assert_allclose(forth.p_value, back.p_value, rtol=1e-6, atol=1e-12)
    assert (forth.differs == back.differs).all()
    same = ratios(old, old, floor, freedom=freedom, paired=paired)
    assert not same.differs.any()
    assert (same.ratio == 1).all()


def test_calibrate_keeps_the_spread_of_given_recordings(tmp_path):
    files = []
    for seed in range(6):
        files.append(str(tmp_path / f"{seed}.epprof"))
        vary(0.02, seed).save(files[-1])
    result = CliRunner().invoke(main, ["calibrate", *files])
    assert result.exit_code == 0, result.output
    kept = load_spread(machine_id(), "GPU X")
    assert kept["recordings"] == 6
    assert f"elapsed time {percent(kept['total'])}\n" in result.output
    assert f"device times {percent(kept['device'])}\n" in result.output
    assert f"host times   {percent(kept['host'])}\n" in result.output
    assert str(spread_path()) in result.output
    compared = CliRunner().invoke(main, ["compare", files[0], files[1]])
    assert "`epprof calibrate` measured 6" in compared.output


@pytest.mark.parametrize("cache", ["/proc/self/nope", "a file"])
def test_values_that_cannot_be_kept_are_printed(cache, tmp_path, monkeypatch):
    files = []
    for seed in range(5):
        files.append(str(tmp_path / f"{seed}.epprof"))
        vary(0.02, seed).save(files[-1])
    monkeypatch.setenv("XDG_CACHE_HOME", cache if cache.startswith("/") else files[0])
    result = CliRunner().invoke(main, ["calibrate", *files])
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    *values, last = result.output.splitlines()
    assert [line.split()[0] for line in values[1:]] == ["elapsed", "device", "host"]
    assert last.startswith("Error: The values were not kept. ")
    assert str(spread_path()) in last


def test_an_unwritable_cache_is_reported_before_recording(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/self/nope")
    result = CliRunner().invoke(main, ["calibrate", "--run", "no-such-program"])
    first, *_ = result.output.splitlines()
    assert first.startswith("The values will be printed, but not kept. ")


@pytest.mark.parametrize(
    ("recordings", "text"),
    [
        ([{}] * 4, "4 recordings are too few"),
        ([{"repeats": 9}] + [{}] * 5, "has 9 repeats"),
        ([{"machine": "another"}] * 5, "not made on this machine"),
        ([{}] * 5 + [{"devices": [{"device_id": 0, "name": "GPU Y"}]}], "cannot be combined"),
        ([{}] * 5 + [{"times": {"other": MS}}], "their ops differ"),
    ],
)
def test_what_cannot_calibrate_is_refused(tmp_path, recordings, text):
    files = []
    for seed, change in enumerate(recordings):
        files.append(str(tmp_path / f"{seed}.epprof"))
        given = {"times": TIMES, "machine": machine_id()} | change
        repeated(given.pop("times"), seed=seed, **given).save(files[-1])
    result = CliRunner().invoke(main, ["calibrate", *files])
    assert result.exit_code == 1
    assert text in result.output
    assert not spread_path().exists()
