"""Generators whose yields are marked: their statements leave the stack while they are suspended."""

from __future__ import annotations

import ast
import sys

import pytest

from epprof_nb import _native
from epprof_nb.recording.statements.markers import RESUME, SUSPEND
from tests.helpers.marked_cells import marked, run
from tests.helpers.recorded_ops import drained, recording

pytestmark = pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="sys.monitoring reports suspensions"
)
EXCEPTIONS = """
import contextlib
log = []
def work(name):
    log.append(name)
def caught():
    while True:
        try:
            got = yield len(log)
            work(f"got {got}")
        except ValueError as error:
            work(f"caught {error}")
        finally:
            work("finally")
def suppressed():
    for n in range(3):
        with contextlib.suppress(KeyError):
            sent = yield n
            work(f"sent {sent}")
        work("after")
def nested():
    x = [(yield 1), (yield (yield 2))]
    f = lambda: (yield 3)
    work(str(x + list(f())))
    return (yield), x
a, b, c = caught(), suppressed(), nested()
outcomes = [next(a), next(b), next(c)]
outcomes += [a.send(5), a.throw(ValueError("no")), b.send(6), b.throw(KeyError())]
outcomes += [c.send(i) for i in "tuv"]
try:
    c.send("end")
except StopIteration as end:
    outcomes.append(end.value)
a.close()
try:
    b.throw(OSError())
except OSError:
    log.append("raised")
consumed = sum(outcomes[:3])
"""


@pytest.mark.parametrize("on", [False, True])
def test_exceptions_and_values_pass_as_in_plain_code(on):
    plain = run(ast.parse(EXCEPTIONS))
    assert plain["error"] is None
    if not on:
        assert run(marked(EXCEPTIONS)) == plain
        return
    with recording():
        assert run(marked(EXCEPTIONS)) == plain
        assert _native.depth() <= 1


def test_work_behind_a_yield_is_that_of_the_generator():
    assert sys.getprofile() is None
    source = EXCEPTIONS + "assert __import__('sys').getprofile() is None\n"
    plain = run(ast.parse(source))
    with recording():
        assert run(marked(source))["error"] == plain["error"]
        rows = drained()
    loop = next(row for row in rows if row.name.startswith("while True"))
    assert loop.suspended_ns > 0
    assert loop.duration_ns + loop.suspended_ns == loop.end_ns - loop.start_ns


def test_delegating_generators_and_coroutines_are_not_marked():
    source = "def a():\n    yield from b()\nasync def c():\n    yield 1\n    await d()\n"
    source += "def e():\n    yield 1\n    def f():\n        yield from g\n"
    text = ast.unparse(marked(source))
    assert text.count(SUSPEND) == text.count(RESUME) == 1


def test_handlers_of_thrown_exceptions_belong_to_the_generator():
    with recording():
        run(marked(EXCEPTIONS))
        rows = drained()
    around = {row.name: row.parent for row in rows}
    assert around['work(f"caught {error}")'] == around['work("finally")'] == "try:"
    assert around['work("after")'] == "for n in range(3):"
    assert around['work(f"sent {sent}")'] == "with contextlib.suppress(KeyError):"
