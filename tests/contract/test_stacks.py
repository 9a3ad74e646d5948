"""Stack contract: launches and waits have the Python stack of their thread."""

from __future__ import annotations

import threading

import pytest

import epprof_nb
from epprof_nb.recording.stacks import availability
from tests.contract.rows import kernels_of
from tests.helpers.threads import run_all

pytestmark = pytest.mark.skipif(
    availability.why_unavailable() is not None, reason="stacks cannot be read here"
)


def frames(profile, stack):
    """The functions and lines of this file in a stack, the innermost first."""
    found = []
    while stack >= 0:
        row = profile.stacks.loc[stack]
        if row["file"] == __file__:
            found.append((row["function"].rpartition(".")[2], int(row["line"])))
        stack = profile.stacks["parent_id"].fillna(-1).loc[stack]
    return found


def line_of(function, offset):
    return function.__code__.co_firstlineno + offset


def test_a_kernel_has_the_stack_of_its_launch(device, rig):
    made = device.kernels(["first", "second"])
    array, stream = rig.array(1.0), device.stream()

    def inner(name):
        made[name](array, 2.0, 1.0, stream=stream)

    def outer():
        inner("first")
        inner("second")

    with epprof_nb.profile() as profile:
        outer()
        stream.synchronize()
    kernels = kernels_of(profile)
    assert set(kernels["stack_source"]) == {"exact"}
    for offset, name in enumerate(["first", "second"], 1):
        innermost = [("inner", line_of(inner, 1)), ("outer", line_of(outer, offset))]
        assert frames(profile, kernels.loc[name, "stack_id"])[:2] == innermost


def test_threads_have_stacks_of_their_own(device, rig):
    names = [f"kernel_{i}" for i in range(4)]
    made = device.kernels(names)

    def work(name):
        made[name](rig.array(1.0), 2.0, 1.0, stream=device.stream())

    with epprof_nb.profile() as profile:
        run_all(threading.Thread(target=work, args=(name,)) for name in names)
        device.synchronize()
    kernels = kernels_of(profile)
    assert {tuple(frames(profile, kernels.loc[name, "stack_id"])) for name in names} == {
        (("work", line_of(work, 1)),)
    }


def test_a_wait_has_its_stack(device, rig):
    work = device.kernels(["work"])["work"]
    array, stream = rig.array(1.0), device.stream()

    def wait():
        stream.synchronize()

    with epprof_nb.profile() as profile:
        work(array, 2.0, 1.0, busy_ms=5, stream=stream)
        wait()
    waits = profile.activities[profile.activities["kind"] == "synchronization"]
    found = [frames(profile, stack)[:1] for stack in waits["stack_id"]]
    assert [("wait", line_of(wait, 1))] in found
