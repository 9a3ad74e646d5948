"""Ops, profiles and generators that are nested extremely deep."""

import sys
from contextlib import ExitStack

import epprof_nb
from epprof_nb import _native
from epprof_nb.recording.session.service import service
from tests.stress import FACTOR


def test_every_op_of_a_deep_nesting_is_recorded_or_counted():
    depth = 20_000 * FACTOR
    with epprof_nb.profile() as prof, ExitStack() as stack:
        for level in range(depth):
            stack.enter_context(epprof_nb.op("level", level=level))
    assert len(prof.ops) + prof.info["recorded"]["ops_lost"] == depth
    assert _native.top() == 0
    assert len(prof.by_op()) == 1


def test_a_recursion_error_closes_every_op():
    @epprof_nb.op
    def recurse():
        recurse()

    with epprof_nb.profile() as prof:
        for _ in range(3 * FACTOR):
            try:
                recurse()
            except RecursionError:
                continue
    assert _native.top() == 0
    assert set(prof.ops["status"]) == {"complete"}


def test_nested_profiles_and_generators_end_in_any_order():
    def nested(level: int):
        with epprof_nb.profile() as prof, epprof_nb.op(f"level {level}"):
            yield level
            if level:
                yield from nested(level - 1)
        assert len(prof.ops) >= 1

    levels = min(30 * FACTOR, sys.getrecursionlimit() // 20)
    running = [nested(levels) for _ in range(3)]
    for generator in running:
        for _ in range(levels // 2):
            next(generator)
    for generator in running:  # in the order in which they began, not in reverse
        generator.close()
    assert service.open_subscriptions == 0
    assert _native.top() == 0
