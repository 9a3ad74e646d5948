"""Marked code behaves as plain code does, and its statements are ops."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import sys
import traceback
import warnings
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_ops import drained, recording

from epprof_nb import _native
from epprof_nb.cell import MARKERS, install_markers, instrument
from epprof_nb.statements import TEXT_LIMIT, Cell, shorten, statement, statements_table

if TYPE_CHECKING:
    from types import SimpleNamespace

CORPUS = {
    "assignments": "x = 1\ny: int = 2\nx += y\nz = w = x\na, *b = range(5)\nv: str",
    "walrus": "if (n := 5) > 3:\n    m = n\nl = [k := i for i in range(3)]",
    "one line": "a = 1; b = 2; c = a + b",
    "for else": """
out = []
for i in range(6):
    if i == 1:
        continue
    if i == 4:
        break
    out.append(i)
else:
    out.append("else")
for j in range(2):
    out.append(j)
else:
    out.append("else")
""",
    "while else": """
n, out = 5, []
while n:
    n -= 1
    if n % 2:
        continue
    out.append(n)
else:
    out.append("done")
while True:
    break
else:
    out.append("never")
""",
    "elif": """
def kind(n):
    if n < 0:
        return "neg"
    elif n == 0:
        return "zero"
    elif n == 1:
        return "one"
    else:
        return "many"
r = [kind(i) for i in (-1, 0, 1, 2)]
""",
    "try": """
log = []
def f(x):
    try:
        log.append("try")
        1 / x
    except ZeroDivisionError as e:
        log.append(str(e))
    except TypeError:
        log.append("type")
        raise
    else:
        log.append("else")
    finally:
        log.append("finally")
f(1); f(0)
try:
    f("a")
except TypeError as e:
    log.append(type(e).__name__)
""",
    "return in finally": """
def f():
    try:
        raise ValueError
    finally:
        return 7
def g():
    for i in range(3):
        try:
            continue
        finally:
            if i == 2:
                break
    return i
r = f(), g()
""",
    "exception group": """
got = []
try:
    raise ExceptionGroup("g", [ValueError(1), TypeError(2)])
except* ValueError as e:
    got.append(len(e.exceptions))
except* TypeError as e:
    got.append(len(e.exceptions))
""",
    "with": """
import contextlib
log = []
@contextlib.contextmanager
def cm(name):
    log.append("in " + name)
    try:
        yield name
    finally:
        log.append("out " + name)
with cm("a") as a, cm("b") as b:
    log.append(a + b)
def f():
    with cm("c"):
        return 3
r = f()
for i in range(3):
    with cm(str(i)):
        if i == 1:
            continue
        log.append("body")
""",
    "match": """
def f(x):
    match x:
        case 0:
            return "zero"
        case [a, *rest] if rest:
            r = a, rest
            return r
        case {"k": v}:
            return v
        case str() as s:
            return s
        case _:
            pass
    return None
r = [f(x) for x in (0, [1, 2], [1], {"k": 3}, "s", 4.5)]
""",
    "class": '''
class Base:
    """Doc."""
    __secret = 4
    table = {}
    for i in range(3):
        table[i] = i * i
    if table:
        def dynamic(self):
            return "dynamic"
    def __init__(self, x: int = 3) -> None:
        """Init doc."""
        self.__x = x
    @property
    def x(self):
        return self.__x
    @x.setter
    def x(self, value):
        self.__x = value
    @classmethod
    def make(cls):
        return cls(9)
    @staticmethod
    def twice(n):
        return 2 * n
    class Inner:
        def f(self):
            return __class__.__name__
class Child(Base):
    def __init__(self):
        super().__init__(5)
c = Child()
c.x += 1
r = c.x, Base.make().x, Base.twice(4), c.dynamic(), Base.Inner().f()
names = sorted(n for n in vars(Base) if not n.startswith("__"))
doc = Base.__doc__, Base.__init__.__doc__, Base.__init__.__annotations__
del c
''',
    "enum and dataclass": """
import dataclasses, enum
class Colour(enum.Enum):
    RED = 1
    BLUE = enum.auto()
    def hue(self):
        return self.name.lower()
@dataclasses.dataclass
class P:
    x: int
    y: int = 2
    def s(self):
        return self.x + self.y
r = [c.hue() for c in Colour], P(1).s(), repr(P(4))
""",
    "strange namespace": """
class Meta(type):
    @classmethod
    def __prepare__(meta, name, bases):
        class Names(dict):
            def __missing__(self, key):
                self[key] = key
                return key
        return Names()
class A(metaclass=Meta):
    red
    green
r = sorted(n for n in vars(A) if not n.startswith("__"))
""",
    "scopes": """
total = 0
def outer():
    count = 0
    def inner():
        nonlocal count
        global total
        count += 1
        total += 10
        return count
    inner()
    return inner(), count
r = outer()
""",
    "docstring only": 'def f():\n    """Doc."""\ndef g(): ...\ndef h(): pass\n'
    "r = f.__doc__, f(), g(), h()",
    "docstring": 'def f():\n    "Doc."\n    x = 1\n    return x\nr = f.__doc__, f()',
    "lambda and comprehensions": """
f = lambda x: x + 1
r = [f(i) for i in range(3)], {i: j for i, j in zip("ab", "cd")}, set(x for x in "aab")
""",
    "generators": """
def g(n):
    got = yield "first"
    for i in range(n):
        got = yield (i, got)
    return "end"
def h():
    r = yield from g(2)
    yield r
it = h()
r = [next(it), it.send("a"), it.send("b"), next(it)]
log = []
def closing():
    try:
        while True:
            try:
                yield 1
            except KeyError:
                log.append("key")
                yield "caught"
    finally:
        log.append("closed")
c = closing(); next(c)
r.append(c.throw(KeyError)); c.close()
d = closing(); next(d); del d
squares = list(x * x for x in g(2))if False else []
lambda_gen = list((lambda: (yield 5))())
""",
    "recursion": """
def fact(n):
    return 1 if n < 2 else n * fact(n - 1)
r = fact(20)
def deep(n):
    return deep(n + 1)
try:
    deep(0)
except RecursionError as e:
    caught = True
""",
    "decorators": """
import functools
def loud(f):
    @functools.wraps(f)
    def wrapper(*a, **k):
        return "loud", f(*a, **k)
    return wrapper
@loud
def f(x):
    y = x
    return y
@functools.lru_cache(maxsize=None)
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)
r = f(3), fib(30), f.__name__
""",
    "star expressions": "def f(*a, b=2, **k):\n    return a, b, k\nr = f(*[1, 2], **{'c': 3})\n"
    "x, (y, *z) = 1, (2, 3, 4)\nprint(*z, sep='-')",
    "del and assert": "x = [1, 2]\ndel x[0]\nassert x == [2], 'no'\ny = 1\ndel y",
    "imports": "import os.path as p, sys\nfrom math import *\nfrom math import pi as tau_half\n"
    "r = floor(tau_half)",
    "strings": 's = """a\n  b\nc"""\nf = f"{s!r:>20}"\nb = b"x" b"y"\nü = "ü"; ö = ü + "ß"',
    "async": """
import asyncio, contextlib
log = []
@contextlib.asynccontextmanager
async def cm():
    log.append("in")
    yield 1
    log.append("out")
async def agen(n):
    for i in range(n):
        await asyncio.sleep(0)
        got = yield i
        log.append(got)
async def main():
    async with cm() as x:
        log.append(x)
    async for i in agen(3):
        if i == 1:
            continue
        log.append(i)
    else:
        log.append("else")
    values = [i async for i in agen(2)]
    return values, await asyncio.gather(child(1), child(2))
async def child(i):
    await asyncio.sleep(0.001 * i)
    return i
r = asyncio.run(main())
""",
    "error": "x = 1\n\ndef f(a):\n    b = a\n\n    return (b +\n            missing)\n\nf(\n  1)\n",
    "error in loop": "for i in [3, 2, 1, 0]:\n    if i < 2:\n        y = 6 / (i - 1)\n",
    "error in with": "import contextlib\nwith contextlib.suppress(KeyError):\n    {}[1]\n"
    "with contextlib.nullcontext():\n    [][1]\n",
    "error in finally": "def f():\n    try:\n        1 / 0\n    finally:\n        [][0]\nf()",
    "error in generator": "def g():\n    yield 1\n    raise KeyError('k')\nlist(g())",
    "error cause": "def f():\n    try:\n        1 / 0\n    except ZeroDivisionError as e:\n"
    "        raise ValueError('v') from e\nf()",
    "error in class": "class A:\n    def f(self):\n        return self.__x\nA().f()",
    "error in comprehension": "def f(x):\n    return 1 / x\n[f(i) for i in (1, 0)]",
    "reraise": "def f():\n    try:\n        [][1]\n    except IndexError:\n        raise\nf()",
    "assert fails": "def f(x):\n    assert x, 'message'\nf(0)",
}
if sys.version_info >= (3, 12):
    CORPUS["type parameters"] = (
        "def f[T](x: T) -> T:\n    y = x\n    return y\nr = f(3)\ntype A = int"
    )


def run(tree: ast.Module) -> dict:
    """Run code; what can be seen of it afterwards."""
    namespace = {"__name__": "cell"}
    install_markers(namespace)
    out = io.StringIO()
    error = None
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(tree, "<cell>", "exec"), namespace)
        except Exception as raised:
            error = raised
    simple = (int, float, str, list, tuple, dict, set, bool, type(None))
    state = {
        name: repr(value)
        for name, value in namespace.items()
        if not name.startswith("__") and type(value) in simple
    }
    return {"state": state, "out": out.getvalue(), "error": described(error)}


def described(error: BaseException | None) -> list | None:
    if error is None:
        return None
    frames = [
        (f.name, f.lineno, f.end_lineno, f.colno, f.end_colno)
        for f in traceback.extract_tb(error.__traceback__)
        if f.filename == "<cell>"
    ]
    links = [described(error.__cause__), described(error.__context__)]
    return [type(error).__name__, str(error), frames, links]


def marked(source: str, cell: Cell | None = None) -> ast.Module:
    tree = ast.parse(source)
    tree.body = instrument(tree.body, cell or Cell("In[1]", source))
    return tree


def record(source: str) -> list[SimpleNamespace]:
    namespace: dict = {}
    install_markers(namespace)
    code = compile(marked(source), "<cell>", "exec")
    with recording():
        exec(code, namespace)
        return drained()


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


def test_table_and_texts():
    source = "x = 1\nif x:\n    y = f(\n        x,\n        2)\n\ndef f(a):\n    return a\n"
    cell = Cell("", source)
    tree = ast.parse(source)
    marks = [
        node.value.args[0].value
        for node in ast.walk(ast.Module(instrument(tree.body, cell), []))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "__epprof_line__"
    ]
    cell.name = "In[7]"  # known only once it runs
    keys = np.array([*sorted(marks), 2**31], np.uint32)
    table = statements_table(keys)
    assert table.cell.to_list() == ["In[7]"] * 5 + [None]
    assert table.line.tolist() == [1, 2, 3, 7, 8, -1]
    assert table.end_line.tolist() == [1, 5, 5, 8, 8, -1]
    assert table.text.to_list() == [
        "x = 1", "if x:", "y = f( x, 2)", "def f(a):", "return a", None
    ]  # fmt: skip
    found = statement(int(keys[0]))
    assert found is not None
    assert found.text == "x = 1"
    assert statement(2**31) is None
    assert len(statements_table(np.array([], np.uint32)).text) == 0


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("ü = 'é'; ß = 1", ["ü = 'é'", "ß = 1"]),
        ("x = " + "+".join(["1"] * 100), None),
        ("x = [\n" + "1,\n" * 50 + "]", ["x = [ … ]"]),
        ("async def f(): return 1", ["async def f(): return 1", "return 1"]),
    ],
)
def test_text_of_a_statement(source, text):
    cell = Cell("In[1]", source)
    before = _native.add_statements(b"", b"")
    instrument(ast.parse(source).body, cell)
    after = _native.add_statements(b"", b"")
    texts = [statement(key).text for key in range(before, after)]
    assert all(len(t) <= TEXT_LIMIT for t in texts)
    if text is not None:
        assert texts == text


def test_shorten_cuts_the_middle():
    assert shorten("short") == "short"
    long = "a" * 70 + "b" * 70
    assert len(shorten(long)) == TEXT_LIMIT
    assert shorten(long)[0] == "a"
    assert shorten(long)[-1] == "b"


def test_first_line_shifts_lines():
    source = "%%time\n%%gpuprofile p\nx = 1"
    tree = ast.parse("begin()\nx = 1")
    before = _native.add_statements(b"", b"")
    instrument(tree.body[1:], Cell("In[1]", source), first_line=1)
    found = statement(before)
    assert (found.line, found.text) == (3, "x = 1")


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
