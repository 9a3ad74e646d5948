"""Stacks of a thread that stays in a function: the frames of its callers are not read again."""

import pytest

from epprof_nb import _native
from epprof_nb.recording.stacks import availability
from tests.unit.recording.stacks.test_launch_stacks import Launched, launch, line_of

pytestmark = pytest.mark.skipif(
    availability.why_unavailable() is not None, reason="stacks cannot be read here"
)


def staying(function):
    _native.stay_in_function(0)
    try:
        function()
    finally:
        _native.leave_function()


def names(frames):
    return [(f.function.rpartition(".")[2], f.line) for f in frames if f.file == __file__]


def test_its_callers_are_in_the_stacks():
    def twice():
        launch()
        launch()

    def run():
        staying(twice)

    found = Launched(run).stacks
    for frames, offset in zip(found, (1, 2), strict=True):
        assert names(frames)[:3] == [
            ("twice", line_of(twice, offset)), ("staying", line_of(staying, 3)),
            ("run", line_of(run, 1)),
        ]  # fmt: skip
    assert found[0][-12:] == found[1][-12:]
    assert min(map(len, found)) > 15


def test_stacks_are_the_same_as_without():
    ids = []

    def note():
        ids.append(_native.current_stack())

    def run():
        for stay in (False, True):
            if stay:
                _native.stay_in_function(0)
            note()
        _native.leave_function()

    Launched(run)
    assert ids[0] == ids[1] >= 0


@pytest.mark.parametrize("leaves", [True, False])
def test_afterwards_the_callers_are_read_again(leaves):
    def stay():
        _native.stay_in_function(0)
        launch()
        if leaves:
            _native.leave_function()

    def run():
        stay()
        stay()
        launch()

    found = [dict(names(frames))["run"] for frames in Launched(run).stacks]
    assert found == [line_of(run, n) for n in (1, 2, 3)]
    _native.leave_function()


def test_another_function_may_resume_a_generator():
    def launches():
        _native.stay_in_function(0)
        while True:
            launch()
            yield

    def first():
        next(generator)

    def second():
        next(generator)

    def run():
        first()
        second()

    generator = launches()
    found = [names(frames)[1][0] for frames in Launched(run).stacks]
    assert found == ["first", "second"]


def test_of_a_function_that_is_not_on_the_stack_nothing_is_kept():
    def run():
        _native.stay_in_function(5_000)
        launch()

    [frames] = Launched(run).stacks
    assert names(frames)[0] == ("run", line_of(run, 2))


def test_without_stacks_it_does_nothing():
    _native.stay_in_function(0)
    _native.leave_function()
    assert _native.current_stack() == -1
