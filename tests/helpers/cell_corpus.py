"""Cells with all kinds of Python code, which run the same with and without markers."""

from __future__ import annotations

import sys

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
