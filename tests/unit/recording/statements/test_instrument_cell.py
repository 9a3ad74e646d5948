"""Code with markers behaves like plain code, and its statements are ops."""

from __future__ import annotations

import ast
import asyncio
import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epprof_nb import _native
from epprof_nb.recording.statements.instrument_cell import instrument
from epprof_nb.recording.statements.markers import MARKERS, install_markers
from epprof_nb.recording.statements.statement_registry import Cell
from tests.helpers.cell_corpus import CORPUS
from tests.helpers.marked_cells import marked, record, run
from tests.helpers.recorded_ops import drained, recording


@pytest.mark.parametrize("source", CORPUS.values(), ids=CORPUS.keys())
@pytest.mark.parametrize("on", [False, True], ids=["off", "on"])
def test_behaves_as_plain(source, on):
    plain = run(ast.parse(source))
    with recording() if on else contextlib.nullcontext():
        assert run(marked(source)) == plain


@pytest.mark.parametrize("source", CORPUS.values(), ids=CORPUS.keys())
def test_nothing_stays_open(source):
    with recording():
        run(marked(source))
        depth = _native.depth()
    # The last statement at each level of the module stays until the session ends.
    assert depth <= 3


def _indent(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


STATEMENTS = st.recursive(
    st.sampled_from(["t += 1", "t *= 2", "pass", "t -= sum([t % 3])", "f(t)", "1 / (t % 7)"]),
    lambda inner: st.one_of(
        st.builds("if t % 2:\n{0}\nelse:\n{1}".format, *[st.builds(_indent, inner)] * 2),
        st.builds(
            "for i in range(3):\n{0}\n    if t > 50: break".format, st.builds(_indent, inner)
        ),
        st.builds("for j in range(2):\n    if j: continue\n{0}".format, st.builds(_indent, inner)),
        st.builds(
            "try:\n{0}\nexcept ZeroDivisionError:\n{1}\nfinally:\n    t += 1".format,
            *[st.builds(_indent, inner)] * 2,
        ),
        st.builds("with cm():\n{0}".format, st.builds(_indent, inner)),
        st.builds("{0}\n{1}".format, inner, inner),
    ),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(body=STATEMENTS, inside=st.booleans())
def test_any_nesting_behaves_as_plain(body, inside):
    head = "from contextlib import nullcontext as cm\nt = 1\ndef f(x):\n    return x\n"
    if inside:
        source = f"{head}def run(t):\n{_indent(body)}\n    return t\nr = run(5)\n"
    else:
        source = head + body
    plain = run(ast.parse(source))
    with recording():
        assert run(marked(source)) == plain
        assert _native.depth() <= 12


def test_statements_nest_as_the_code_does():
    rows = record(
        "def f(n):\n"
        "    for i in range(n):\n"
        "        x = i\n"
        "    return x\n"
        "f(2)\n"
        "with memoryview(b'') as m:\n"
        "    y = 1\n"
        "z = 1\n"
    )
    assert [(r.parent, r.name) for r in rows] == [
        (None, "def f(n):"),
        (None, "f(2)"),
        ("f(2)", "for i in range(n):"),
        ("for i in range(n):", "x = i"),
        ("for i in range(n):", "x = i"),
        ("f(2)", "return x"),
        (None, "with memoryview(b'') as m:"),
        ("with memoryview(b'') as m:", "y = 1"),
        (None, "z = 1"),
    ]


def parents_of_calls(source):
    """The name of each op that `source` opens with `op(name)`, and of the statement around it."""
    namespace: dict = {}
    install_markers(namespace)

    def op(name):
        _native.pop(_native.push(_native.intern(name), 0))
        return True

    namespace["op"] = op
    tree = ast.parse(source)
    tree.body = instrument(tree.body, Cell("In[1]", source))
    with recording():
        exec(compile(tree, "<cell>", "exec"), namespace)
        rows = drained()
    return [(r.name, r.parent) for r in rows if len(r.name) == 1]


def test_a_loop_that_counts_has_the_statements_of_one_that_does_not():
    source = """
for i in RANGE:
    op("a")
    for j in LIST:
        if j:
            op("b")
            continue
        op("c")
    while True:
        op("d")
        break
else:
    op("e")
op("f")
"""
    counting = source.replace("RANGE", "range(3)").replace("LIST", "[0, 1]")
    iterating = source.replace("RANGE", "iter(range(3))").replace("LIST", "iter([0, 1])")
    iterating = iterating.replace("True", "i < 9")
    found = parents_of_calls(counting)
    assert found == parents_of_calls(iterating)
    assert found == [(name, f'op("{name}")') for name in "acbdacbdacbdef"]


def test_what_the_header_of_a_loop_calls_is_not_of_its_body():
    source = """
def numbers():
    for i in range(2):
        yield i
for i in (op("x") and n for n in numbers()):
    op("a")
for i in range(2 * op("y")):
    op("b")
i = 0
while op("z") and i < 1:
    i += 1
"""
    found = dict(parents_of_calls(source))
    assert found["x"] == 'for i in (op("x") and n for n in numbers()):'
    assert found["y"] == 'for i in range(2 * op("y")):'
    assert found["z"] == 'while op("z") and i < 1:'


def test_header_and_exit_run_under_the_compound_statement():
    source = """
def step():
    op("next"); end()
    return True
class Context:
    def __enter__(self): pass
    def __exit__(self, *a): op("exit"); end()
n = 0
while n < 2 and step():
    n += 1
with Context():
    n = 5
for i in range(2):
    if i == 0:
        continue
    n = 7
"""
    namespace: dict = {}
    install_markers(namespace)
    opened: list[int] = []
    namespace["op"] = lambda name: opened.append(_native.push(_native.intern(name), 0))
    namespace["end"] = lambda: _native.pop(opened.pop())
    tree = ast.parse(source)
    # The helpers stay plain, so that the ops' parents are the statements that called them.
    tree.body = tree.body[:2] + instrument(tree.body[2:], Cell("In[1]", source))
    with recording():
        exec(compile(tree, "<cell>", "exec"), namespace)
        rows = drained()
    parents = [(r.name, r.parent) for r in rows if r.name in ("next", "exit")]
    header = "while n < 2 and step():"
    assert parents == [("next", header), ("next", header), ("exit", "with Context():")]


def test_an_error_that_is_caught_ends_what_it_left():
    rows = record(
        "def f():\n    with open('/missing/file') as h:\n        pass\n"
        "try:\n    f()\nexcept OSError:\n    x = 1\ny = 2\n"
    )
    assert [(r.parent, r.name) for r in rows][-3:] == [
        ("f()", "with open('/missing/file') as h:"),
        ("try:", "x = 1"),
        (None, "y = 2"),
    ]
    assert [r.flags & 1 for r in rows] == [0] * (len(rows) - 1) + [1]


def test_a_generator_is_a_child_of_the_statement_that_ran_it_first():
    rows = record(
        "def g():\n    yield 1\n    yield 2\nit = g()\na = next(it)\nb = 0\nc = next(it)\n"
    )
    assert ("a = next(it)", "yield 1") in [(r.parent, r.name) for r in rows]
    (first,) = [r for r in rows if r.name == "yield 1"]
    assert first.suspended_ns > 0
    assert {r.parent for r in rows if r.name in ("b = 0", "c = next(it)")} == {None}


def test_many_executions_are_coalesced():
    rows = record("t = 0\nfor i in range(20_000):\n    t += i\n")
    assert sum(r.count for r in rows if r.name == "t += i") == 20_000
    assert len(rows) < 5_000


def test_functions_that_something_else_compiles_are_left_alone():
    source = """
def njit(f): return f
def marked_function(x):
    y = x
    return y
@njit
def decorated(x):
    y = x
    return y
def handed_over(x):
    y = x
    return y
class Model:
    def forward(self, x):
        y = x
        return y
fast = njit(handed_over)
import builtins
model = builtins.getattr(object, "compile", njit)(Model())
torch = builtins
m = torch.compile("1", "x", "eval") if False else None
def compile(model): return model
c = compile(Model())
"""
    namespace: dict = {}
    install_markers(namespace)
    exec(compile(marked(source), "<cell>", "exec"), namespace)

    def names(function):
        return any(name in MARKERS for name in function.__code__.co_names)

    assert names(namespace["marked_function"])
    assert not names(namespace["decorated"])
    assert not names(namespace["handed_over"])
    assert not names(namespace["Model"].forward)


def test_functions_outlive_a_cleared_namespace():
    namespace: dict = {}
    install_markers(namespace)
    exec(compile(marked("def f():\n    x = 1\n    return x\n"), "<cell>", "exec"), namespace)
    function = namespace["f"]
    namespace.clear()
    assert function() == 1


def test_top_level_await():
    source = "import asyncio\nawait asyncio.sleep(0)\nasync with asyncio.Lock():\n    x = 1\n"
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    namespace: dict = {}
    install_markers(namespace)
    code = compile(marked(source), "<cell>", "exec", flags)

    async def main():
        await eval(code, namespace)

    with recording():
        asyncio.run(main())
        rows = drained()
    assert ("async with asyncio.Lock():", "x = 1") in [(r.parent, r.name) for r in rows]
    assert namespace["x"] == 1
