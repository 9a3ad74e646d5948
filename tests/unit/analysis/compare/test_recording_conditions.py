"""Recordings of busy machines: the load must not be reported as a change of the code."""

import math

import numpy as np
import pytest

from epprof_nb import compare
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.compare.recording_conditions import slowdown_of_host
from tests.helpers.repeated import MS, TIMES, repeated
from tests.helpers.tiny import profile, rows

HOST = [{"device_id": 0, "name": "host device", "kind": "host"}]
QUIET = {"cores": 2, "own_cores": 0.99, "other_cores": 0.01, "waiting": 0.0, "stolen_cores": 0.0}
BUSY = QUIET | {"own_cores": 0.68, "other_cores": 1.2, "waiting": 0.31}


def made(load, factor=1.0, seed=0, devices=HOST, **more):
    """A recording under a load; its code takes `factor` times as long as `TIMES`."""
    times = {name: round(time * factor) for name, time in TIMES.items()}
    return repeated(times, seed=seed, devices=devices, load=load, **more)


def test_a_baseline_of_a_busier_machine_does_not_make_the_same_code_faster():
    for seed in range(5):
        slowed = 1.35 + 0.03 * seed
        result = compare(made(BUSY, slowed, seed), made(QUIET, 1, seed + 10), names=("a", "b"))
        assert result.verdict == "cannot tell"
        assert "used 1.2 of 2 cores and it waited for a core in 31 % of its time" in result.reason
        assert "while the new code was recorded, other processes used 0.0 of 2" in result.reason
        assert "`%%gpuprofile b --repeat 20 --baseline a --interleave`" in result.reason
        assert set(result.ops["verdict"]) == {"cannot tell"}
        back = compare(made(QUIET, 1, seed + 10), made(BUSY, slowed, seed))
        assert back.verdict == "cannot tell"
        assert 1 + back.change_low == pytest.approx(1 / (1 + result.change_high))


def test_a_load_explains_times_of_one_direction_only():
    # The new code is slower although the machine was busy with the old one.
    assert compare(made(BUSY), made(QUIET, 1.2, 1)).verdict == "slower"
    assert compare(made(QUIET), made(BUSY, 0.8, 1)).verdict == "faster"
    # No load explains a factor of ten.
    assert compare(made(BUSY, 10), made(QUIET, 1, 1)).verdict == "faster"


def test_quiet_machines_tell_as_before():
    result = compare(made(QUIET), made(QUIET, 1.2, 1))
    assert result.verdict == "slower"
    assert "other processes" not in result.reason
    assert compare(made(QUIET), made(QUIET, 1, 1)).verdict == "no difference found"


def test_equally_busy_recordings_of_the_same_code_are_not_called_different():
    rng = np.random.default_rng(0)
    for seed in range(10):
        factors = np.exp(0.35 * rng.random(2))
        result = compare(made(BUSY, factors[0], seed), made(BUSY, factors[1], seed + 50))
        assert result.verdict in ("cannot tell", "no difference found")


def test_threads_that_wait_for_each_other_are_no_load():
    own = QUIET | {"own_cores": 2.0, "other_cores": 0.02, "waiting": 0.6}
    assert compare(made(own), made(own, 1.2, 1)).verdict == "slower"


def test_other_processes_slow_many_threads_as_much_as_one():
    loads = [QUIET | {"other_cores": 1.0, "own_cores": own} for own in (1.0, 8.0)]
    one, many = (slowdown_of_host(ProfileIndex(profile(info={"load": load}))) for load in loads)
    assert one == many > 0


def test_time_that_a_hypervisor_or_a_lower_frequency_took_counts():
    stolen = QUIET | {"own_cores": 0.7, "stolen_cores": 0.3}
    result = compare(made(stolen, 1.35), made(QUIET, 1, 1))
    assert result.verdict == "cannot tell"
    assert "the hypervisor took 30 % of a core" in result.reason
    slow, fast = (QUIET | {"cpu_mhz": [800.0, mhz]} for mhz in (2400.0, 3600.0))
    result = compare(made(slow, 1.45), made(fast, 1, 1))
    assert result.verdict == "cannot tell"
    assert "the core ran at 2,400 instead of 3,600 MHz" in result.reason


def gpu(processes):
    others = [{"pid": 100 + i, "memory_bytes": None} for i in range(processes)]
    return {"after": {"gpus": [{"name": "GPU X", "other_processes": others}]}}


def test_times_of_a_gpu_depend_on_its_own_load():
    cuda = [{"device_id": 0, "name": "GPU X", "kind": "gpu"}]
    old, new = made(BUSY, 1.35, devices=cuda), made(QUIET, 1, 1, devices=cuda)
    # It was busy all the time, so the host did not slow it down.
    assert compare(old, new).verdict == "faster"
    shared = made(QUIET, 1.35, devices=cuda, gpu=gpu(2))
    result = compare(shared, made(QUIET, 1, 1, devices=cuda, gpu=gpu(1)))
    assert result.verdict == "cannot tell"
    assert "1 further process used the GPU" in result.reason
    assert set(result.kernels["verdict"]) == {"cannot tell"}
    alike = compare(shared, made(QUIET, 1, 1, devices=cuda, gpu=gpu(2)))
    assert alike.verdict == "faster"


def test_several_recordings_are_compared_by_what_differs():
    old = [made(BUSY, 1.3 + 0.01 * i, i) for i in range(3)]
    new = [made(BUSY, 1.6 + 0.01 * i, 10 + i) for i in range(3)]
    assert compare(old, new).verdict == "slower"
    quiet = [made(QUIET, 1 + 0.01 * i, 20 + i) for i in range(3)]
    assert compare(old, quiet).verdict == "cannot tell"


def test_repeats_that_alternated_had_the_same_load():
    sides = [
        made(BUSY, factor, side, alternated={"recording": "r", "side": side})
        for side, factor in enumerate((1, 1.1))
    ]
    assert compare(*sides).verdict == "slower"


@pytest.mark.parametrize(
    "load",
    [None, {}, {"cores": 0}, {"own_cores": "x", "other_cores": math.nan}, {"cpu_mhz": ["a", -1]},
     {"waiting": 1.0, "own_cores": 1.0, "other_cores": 1e300}],
)  # fmt: skip
def test_a_load_that_is_not_known_or_damaged_is_none(load):
    result = compare(made(load), made(QUIET, 1.2, 1))
    assert result.verdict == "slower"


def test_the_bound_of_conditions_is_part_of_what_would_be_found():
    little = QUIET | {"other_cores": 0.3}
    quiet, loaded = (compare(made(load), made(load, 1, 1)) for load in (QUIET, little))
    assert loaded.verdict == "no difference found"
    assert loaded.detectable_change > quiet.detectable_change + 0.05
    assert "other processes used 0.3 of 2 cores" in loaded.reason
    assert rows(loaded.ops)["load(x)"]["verdict"] == "no difference found"


def test_times_without_a_device_are_bounded_too():
    old, new = (
        repeated({"f()": round(MS * factor)}, device=False, devices=[], load=load, seed=seed)
        for seed, (load, factor) in enumerate(((BUSY, 1.4), (QUIET, 1)))
    )
    assert compare(old, new).verdict == "cannot tell"


def kept_waiting(factor, side, *, known=True, **more):
    """Repeats, many of which waited for a core for at least as long as they ran."""
    waits = np.random.default_rng(side).exponential(1.5, 20) * (np.arange(20) % 3 > 0)
    info = {"alternated": {"recording": "r", "side": side}}
    if known:
        took = sum(TIMES.values()) * factor
        info["repeat_waits_ns"] = [round(took * wait) for wait in waits]
    return made(BUSY, factor, side, speed=1 + waits, **info | more)


def test_waits_for_a_core_do_not_hide_a_change_from_repeats_that_alternate():
    result = compare(kept_waiting(1, 0), kept_waiting(1.1, 1))
    assert result.verdict == "slower"
    assert result.change == pytest.approx(0.1, abs=0.02)
    assert "kept the repeats waiting for a core in up to" in " ".join(result.notes)
    assert compare(kept_waiting(1, 0), kept_waiting(1, 1)).verdict == "no difference found"
    unknown = compare(*(kept_waiting(1 + 0.1 * side, side, known=False) for side in range(2)))
    assert unknown.verdict in ("cannot tell", "no difference found")
    # A GPU may have worked meanwhile.
    cuda = [{"device_id": 0, "name": "GPU X", "kind": "gpu"}]
    sides = [kept_waiting(1 + 0.1 * side, side, devices=cuda) for side in range(2)]
    assert compare(*sides).change == pytest.approx(unknown.change)


def test_waits_of_threads_for_each_other_are_time_of_the_code():
    alone = QUIET | {"own_cores": 2.0, "other_cores": 0.0, "waiting": 0.6}
    sides = [kept_waiting(1 + 0.1 * side, side) for side in range(2)]
    for side in sides:
        side.info["load"] = alone
    unknown = [kept_waiting(1 + 0.1 * side, side, known=False) for side in range(2)]
    assert compare(*sides).change == pytest.approx(compare(*unknown).change)


def test_waits_that_are_subtracted_have_a_row_so_that_rows_add_up():
    result = compare(kept_waiting(1, 0), kept_waiting(1.1, 1))
    table = [
        [cell.strip() for cell in text.split("|")[1:-1]]
        for text in result.to_markdown().splitlines() if text.startswith("| ")
    ]  # fmt: skip
    names = [row[0] for row in table]
    at = names.index("waiting for a core, subtracted")
    assert table[at][1].count("ms") == 2
    assert names[-1] == "whole repeat"
    scale = {"ms": 1.0, "\N{MICRO SIGN}s": 1e-3, "ns": 1e-6, "s": 1e3}
    shown = [float(row[2].split()[0]) * scale[row[2].split()[1]] for row in table[1:]]
    assert sum(shown[:-1]) == pytest.approx(shown[-1], abs=0.05)
    assert "subtracted" not in repr(compare(made(BUSY), made(BUSY, 1, 1)))
