"""Tracebacks of profiled cells in a real kernel: the same text as without the magic.

IPython formats errors differently in a terminal: only a kernel shows that the line of a frame
(``frame.f_lineno``) differs from the line of its traceback entry. ``tests.run_matrix`` runs this
file with other releases of IPython.
"""

from __future__ import annotations

import re

import IPython
import pytest

from tests.helpers.jupyter_kernels import running_kernel

TIMEOUT_S = 120

FAILING = {
    "module": "x = 1\ny = 2\nx / 0\nz = 3",
    "last statement": "x = 1\n\ny = (x +\n     missing)",
    "function": "def f(a):\n    b = a\n\n    return b / 0\n\nx = 1\nf(x)\ny = 2",
    "nested function": """
def outer(a):
    def inner(b):
        c = b
        return c / 0
    d = a
    return inner(d)
outer(1)
""",
    "recursion": "def f(n):\n    m = n\n    return f(m - 1) if m else m / 0\nf(3)",
    "lambda": "f = lambda a: a / 0\nx = 1\nf(x)",
    "method": "class A:\n    def f(self):\n        x = 1\n        return self.missing\n\nA().f()",
    "class body": "class A:\n    x = 1\n    y = x / 0\n    z = 2",
    "comprehension": "def f(a):\n    b = a\n    return 1 / b\nx = [\n    f(i) for i in (1, 0)\n]",
    "generator": "def g():\n    x = 1\n    yield x\n    y = 2\n    yield y / 0\nlist(g())",
    "generator that delegates": """
def g():
    x = yield 1
    x / 0
def h():
    y = 1
    yield from g()
it = h()
next(it)
it.send(1)
""",
    "error thrown into a generator": """
def g():
    x = 1
    yield x
    y = 2
    yield y
it = g()
next(it)
it.throw(KeyError("k"))
""",
    "async function": """
import asyncio
async def f(a):
    b = a
    await asyncio.sleep(0)
    return b / 0
x = 1
await f(x)
""",
    "tasks": """
import asyncio
async def f(a):
    b = 1
    await asyncio.sleep(0)
    return b / a
await asyncio.gather(f(1), f(0))
""",
    "async generator": """
import asyncio
async def g():
    x = 1
    yield x
    await asyncio.sleep(0)
    yield x / 0
async for i in g():
    x = i
""",
    "with": """
import contextlib
def f():
    with contextlib.suppress(KeyError):
        x = 1
        1 / 0
    y = 2
with contextlib.nullcontext():
    x = 1
    f()
""",
    "generator context manager": """
import contextlib
@contextlib.contextmanager
def context():
    x = 1
    try:
        yield x
    finally:
        y = 2
def f():
    with context():
        y = 1
        y / 0
f()
""",
    "try and finally": """
log = []
def f():
    x = 1
    try:
        x / 0
    finally:
        log.append(x)
    y = 2
try:
    x = 1
    f()
finally:
    log.append(2)
""",
    "raised again": """
def f():
    x = 1
    try:
        x / 0
    except ZeroDivisionError as error:
        y = 2
        raise
f()
""",
    "cause": """
def f():
    x = 1
    try:
        x / 0
    except ZeroDivisionError as error:
        y = 2
        raise ValueError("v") from error
x = 1
f()
""",
    "context": """
def f():
    x = 1
    try:
        x / 0
    except ZeroDivisionError:
        y = 2
        [][y]
try:
    f()
except IndexError:
    z = 3
    {}[z]
""",
    "group": """
def f(a):
    b = a
    return b / 0
errors = []
for a in (1, 2):
    try:
        f(a)
    except ZeroDivisionError as error:
        errors.append(error)
raise ExceptionGroup("group", errors)
""",
    "assertion": "def check(x):\n    y = x\n    assert y, 'message'\nx = 0\ncheck(x)",
    "match": "x = 3\nmatch x:\n    case 1:\n        y = 1\n    case _:\n        x / 0",
    "loop": "for i in [2, 1, 0]:\n    y = 1\n    y = 6 / i\nelse:\n    y = 2",
    "decorated": """
import functools
def twice(f):
    @functools.wraps(f)
    def wrapper(a):
        b = f(a)
        return f(b)
    return wrapper
@twice
def f(a):
    b = a - 1
    return 1 / b
f(2)
""",
    "exit": "import sys\nx = 1\nsys.exit(3)",
    "interrupt": "import signal\nx = 1\nsignal.raise_signal(signal.SIGINT)\ny = 2",
}  # fmt: skip


class Kernel:
    def __init__(self, client):
        self.client = client

    def run(self, code):
        """Run a cell; return its traceback and what it wrote to stderr, without colours."""
        texts = []

        def collect(message):
            content = message["content"]
            if message["msg_type"] == "error":
                texts.append("\n" * bool(texts) + "\n".join(content["traceback"]))
            elif message["msg_type"] == "stream" and content["name"] == "stderr":
                texts.append(content["text"])  # a busy kernel sends one text in pieces

        self.client.execute_interactive(
            code, output_hook=collect, timeout=TIMEOUT_S, stop_on_error=False
        )
        text = re.sub(r"\x1b\[[\d;]*m", "", "".join(texts))
        text = re.sub(r"In ?\[\d+\]", "In[N]", text)
        text = re.sub(r"0x[\da-f]+", "0x", text)
        return re.sub(r"ipykernel_\d+/\d+", "ipykernel/cell", text)


@pytest.fixture(scope="module")
def kernel():
    with running_kernel(timeout_s=TIMEOUT_S) as client:
        kernel = Kernel(client)
        assert kernel.run("%load_ext epprof_nb") == ""
        version = IPython.__version__
        assert kernel.run(f"import IPython\nassert IPython.__version__ == {version!r}") == ""
        # IPython repeats the one about sys.exit() whenever another module changes the filters.
        kernel.run("import warnings\nwarnings.simplefilter('ignore', UserWarning)")
        yield kernel


@pytest.mark.parametrize("options", ["-q", "-q --no-lines", "-q -r 2", "-q -w 1"])
@pytest.mark.parametrize("name", FAILING)
def test_the_traceback_is_that_of_the_plain_cell(kernel, name, options):
    # The first line of a profiled cell is shown as a comment.
    plain = kernel.run(f"# %%gpuprofile {options}\n{FAILING[name]}")
    assert plain
    assert kernel.run(f"%%gpuprofile {options}\n{FAILING[name]}") == plain


FUNCTIONS = """
import contextlib
def function(a):
    b = a

    return b / 0
def generator(a):
    b = a
    yield b
    c = b
    yield c / 0
async def coroutine(a):
    b = a
    await asyncio.sleep(0)
    return b / 0
async def async_generator(a):
    b = a
    yield b
    c = b
    yield c / 0
class A:
    @property
    def value(self):
        x = 1
        return x / 0
def nested(a):
    b = a
    def inner():
        c = b
        return c / 0
    return inner
"""
CALLS = {
    "function": "x = 1\nfunction(x)",
    "generator": "x = 1\nlist(generator(x))",
    "coroutine": "x = 1\nawait coroutine(x)",
    "async generator": "x = 1\n[i async for i in async_generator(x)]",
    "property": "x = 1\nA().value",
    "nested": "x = nested(1)\nx()",
}


@pytest.mark.parametrize("profiled_call", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_functions_of_a_profiled_cell_called_from_another(kernel, name, profiled_call):
    head = "{}gpuprofile -q\nimport asyncio\n"
    comment, magic = head.format("# %%"), head.format("%%")
    kernel.run(comment + FUNCTIONS)
    plain = kernel.run(comment + CALLS[name])
    assert "ZeroDivisionError" in plain
    assert kernel.run(magic + FUNCTIONS) == ""
    assert kernel.run((magic if profiled_call else comment) + CALLS[name]) == plain


@pytest.mark.parametrize("mode", ["Verbose", "Plain", "Minimal", "Context"])
@pytest.mark.parametrize("name", ["function", "generator", "try and finally", "context", "method"])
def test_every_mode(kernel, name, mode):
    kernel.run(f"%xmode {mode}")
    try:
        plain = kernel.run(f"# %%gpuprofile -q\n{FAILING[name]}")
        assert plain
        assert kernel.run(f"%%gpuprofile -q\n{FAILING[name]}") == plain
    finally:
        kernel.run("%xmode Context")


def test_the_line_magic_and_a_cell_run_inside_another_magic(kernel):
    kernel.run("def f(a):\n    b = a\n    return b / 0")
    assert "line 3, in f(a)" in kernel.run("%gpuprofile -q f(1)")
    plain = kernel.run("%%time\n# %%gpuprofile -q\nx = 1\nx / 0")
    profiled = kernel.run("%%time\n%%gpuprofile -q\nx = 1\nx / 0")
    assert "<timed exec>:3" in plain
    assert profiled.replace("'%%gpuprofile", "'# %%gpuprofile") == plain
