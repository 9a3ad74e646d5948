"""Code that other processes keep waiting for a core: the line and the gains say it."""

import pytest

import epprof_nb
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.ranking import findings
from epprof_nb.analysis.summary.headline import headline_of
from epprof_nb.data.profile_data import ProfileData
from tests.helpers.planted import MS, US
from tests.helpers.tiny import call, kernel, op, profile

QUIET = {"cores": 2, "own_cores": 0.99, "other_cores": 0.01, "waiting": 0.0}
BUSY = {"cores": 2, "own_cores": 0.25, "other_cores": 1.71, "waiting": 0.75}
"""As recorded beside two busy processes on two cores."""
HOST = {"devices": [{"device_id": 0, "name": "host device", "kind": "host"}]}
ROUNDS = 120


@pytest.fixture(scope="module")
def recorded():
    """Each round prepares for 1 ms on the host, and launches a kernel of 20 us on the device.

    On a busy machine, the worker of a real device would start late, and work be held.
    """
    ops, kernels, calls = [], [], []
    for i in range(ROUNDS):
        t = i * (MS + 30 * US)
        launched = t + MS
        ops += [
            op(2 * i + 1, "prep", t, launched),
            op(2 * i + 2, "mm", launched, launched + 5 * US),
        ]
        calls.append(call(launched, launched + 5 * US, correlation_id=i, op_id=2 * i + 2))
        kernels.append(kernel(launched + 5 * US, launched + 25 * US, 2 * i + 2,
                              correlation_id=i, thread_id=1))  # fmt: skip
    return profile(ops, kernels, calls, info={"wall_ns": ROUNDS * (MS + 30 * US), **HOST})


def under(load, prof, **more):
    return ProfileIndex(ProfileData(prof.tables, {**prof.info, "load": load, **more}, prof.sources))


def test_the_line_says_that_the_code_waited_for_a_core(recorded):
    text = "waited for a core 75 % of the time, because other processes used 1.7 of 2 cores"
    busy = headline_of(under(BUSY, recorded))
    assert text in busy.line
    assert (
        f"It {text}. These waits are part of the wall time; without a GPU, " in busy.overhead_note
    )
    assert text in epprof_nb.Profile(recorded.tables, {**recorded.info, "load": BUSY}).summary()
    assert "for a core" not in headline_of(under(QUIET, recorded)).line


@pytest.mark.parametrize(
    ("wall_ns", "is_said"), [(84 * US, False), (99 * MS, False), (MS * 100, True)]
)
def test_a_short_cell_says_nothing_of_other_processes(recorded, wall_ns, is_said):
    """The system counts the use of the cores in ticks of 10 ms."""
    busy = under(BUSY, recorded, wall_ns=wall_ns)
    assert ("for a core" in headline_of(busy).line) == is_said


def test_gains_leave_out_the_waits_for_a_core(recorded):
    quiet, busy = (findings(under(load, recorded, added_ns={"total": 0}), limit=None)
                   for load in (QUIET, BUSY))  # fmt: skip
    assert quiet[0].kind == "idle"
    assert busy[0].gain_ns == round(quiet[0].gain_ns / 4)
    assert busy[0].high_ns == round(quiet[0].high_ns / 4)
    assert busy[0].text == quiet[0].text


def test_a_gpu_may_have_worked_while_the_host_waited(recorded):
    gpu = [{**device, "kind": "gpu"} for device in recorded.info["devices"]]
    loads = (QUIET, BUSY)
    quiet, busy = (findings(under(load, recorded, devices=gpu, added_ns={"total": 0}), limit=None)
                   for load in loads)  # fmt: skip
    assert [f.gain_ns for f in busy] == [f.gain_ns for f in quiet] != []


def test_threads_that_wait_for_each_other_were_kept_by_no_other_process(recorded):
    own = {"cores": 2, "own_cores": 2.0, "other_cores": 0.02, "waiting": 0.6}
    assert "for a core" not in headline_of(under(own, recorded)).line
    for damaged in ({"waiting": 1.0}, {"waiting": 0.9, "own_cores": 1.0}, {"cores": "x"}, None):
        assert "for a core" not in headline_of(under(damaged, recorded)).line
