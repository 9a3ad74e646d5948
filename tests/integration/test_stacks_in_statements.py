"""Lines of stacks and of marked statements: where both exist, the first is in the second."""

import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.recording.stacks import availability

pytestmark = pytest.mark.skipif(
    availability.why_unavailable() is not None, reason="stacks cannot be read here"
)

SETUP = """
import asyncio, contextlib, functools
from epprof_nb import host

def go(value=None):
    host.launch(int)
    return value
"""

PROGRAMS = {
    "multi-line calls": """
go(
    go(
        1
    ),
)
x = (go()
     or go())
y = [
    go(),
    go(),
]
""",
    "loops": """
for i in range(
    2
):
    go(i)
    if go(i):
        go(
            i)
    else:
        go()
while go(0): pass
else:
    go()
""",
    "comprehensions": """
a = [
    go(i)
    for i in range(2)
    if go(True)
]
b = {go(k): go(
    k) for k in range(2)}
c = sum(
    go(i) for i in (go(j)
                    for j in range(2))
)
""",
    "with": """
@contextlib.contextmanager
def held(value):
    go()
    try:
        yield value
    finally:
        go(
            value)
with held(1) as one, \\
        held(go(2)) as two:
    go(one)
with (
    held(1),
    held(2),
):
    go()
""",
    "try": """
def fails():
    try:
        go()
        raise ValueError
    except ValueError as error:
        go(error)
    else:
        go()
    finally:
        go(
        )
try:
    fails()
    1 / go(0)
except ZeroDivisionError:
    go()
finally:
    go()
""",
    "lambdas": """
f = lambda x: (
    go(x),
    go(x),
)
f(
    1)
sorted([2, 1], key=lambda v: go(v))
(lambda: go())()
functools.reduce(lambda a, b: go(a), range(3))
""",
    "decorators": """
def outer(function):
    go()
    @functools.wraps(function)
    def inner(*args):
        go()
        return function(
            *args)
    return inner

@outer
@outer
def decorated(
    x=go(1),
):
    return go(
        x)

decorated(
    2)
""",
    "classes": """
class Meta(type):
    def __call__(cls, *args):
        go()
        return super().__call__(*args)

class Thing(
    metaclass=Meta,
):
    field = go(
        3)
    more = [go(i) for i in range(2)]
    def __init__(self):
        self.x = go()
    @property
    def value(self):
        return go()
    def __getattr__(self, name):
        return go()
    def __add__(self, other):
        go()
        return self

thing = Thing()
thing.value; thing.nothing
thing + (
    thing
)
""",
    "exec'd strings": """
exec("go()\\n\\ngo()")
eval("go()")
exec(
    compile("go()\\n" * 9, "<generated>", "exec")
)
names = {}
exec("def made():\\n\\n\\n\\n    return go()", globals(), names)
names["made"](
)
""",
    "nested functions": """
def first(n):
    def second(m):
        def third():
            go(n)
            return go(
                m)
        return third
    if n:
        first(n - 1)
    return second(n)()
first(
    3)
""",
    "generators": """
def numbers(n):
    for i in range(n):
        go(i)
        yield (
            go(i)
        )
    yield from (go(i) for i in range(2))
    return go()
def pairs():
    one = yield from numbers(2)
    go(one)
it = pairs()
next(it)
go(next(it))
for value in it: go(value)
a, *b = numbers(3)
""",
    "async": """
class Resource:
    async def __aenter__(self):
        go()
    async def __aexit__(self, *_):
        go()
async def numbers():
    for i in range(2):
        go(i)
        await asyncio.sleep(0)
        yield i
async def work(n):
    async with Resource():
        go(n)
        async for i in numbers():
            go(
                i)
    return [go(i) async for i in numbers()]
async def all_of_it():
    await asyncio.gather(work(1), work(2))
    task = asyncio.create_task(work(3))
    go(await task)
await all_of_it()
go(await work(4))
""",
    "match": """
def kind(value):
    match go(value):
        case 0 if go(): go()
        case [x, *_] if (
            go(True)
        ):
            go(x)
        case _:
            return go(
                value)
kind(0); kind([1]); kind(
    2)
""",
    "conditions": """
x = go(1) if go(
    True
) else go()
assert go(1) and (go(2)
    or go(3))
text = f"{go(1)} {go(2)!r}"
y = go(1); z = go(2); del x
if (n := go(
        3)) > 2: go(n)
elif go(): go()
values = [1]; values[go(0)] += go(1)
""",
}  # fmt: skip

UNMARKED = ("<lambda>", "<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "decorated")
"""Code without marked statements of its own: parts of statements, and decorated functions, whose
decorators may read their code."""
SUSPENDING = ("generators", "async")


def lines_of(lines, stack):
    """The lines of the cell in a stack: (function, line), the innermost first."""
    found = []
    while stack >= 0:
        file, name = (names.take([stack]).to_list()[0] for names in (lines.file, lines.function))
        if file == "In[2]":
            found.append((name.rpartition(".")[2], int(lines.line[stack])))
        stack = lines.parent[stack]
    return found


def statements_around(prof, op):
    """The marked statements around an op, the innermost first."""
    while op >= 0:
        row = prof.ops.loc[op]
        known = row.notna()
        if known["line"]:
            yield row
        op = row["parent_op_id"] if known["parent_op_id"] else -1


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_line_of_the_stack_is_in_the_statement(run, shell, name):
    run(SETUP)
    run(f"%%gpuprofile prof\n{PROGRAMS[name]}\nhost.synchronize()\n")
    prof = shell.user_ns["prof"]
    stacks, kernels = StackLines(ProfileIndex(prof)), prof.activities.query("kind == 'kernel'")
    assert len(kernels) >= 6
    for row in kernels.itertuples():
        statements = list(statements_around(prof, row.op_id))
        lines = [n for of, n in lines_of(stacks, row.stack_id) if of not in UNMARKED]
        assert contains(statements[0], lines[0]), (lines, statements[0]["name"])
        # What has been suspended continues below another statement than the one that began it.
        outer = statements[1:] if name not in SUSPENDING else ()
        for statement in outer:
            is_in = [contains(statement, line) for line in lines]
            assert any(is_in), (lines, statement["name"])


def contains(statement, line):
    return statement["line"] <= line <= statement["end_line"]
