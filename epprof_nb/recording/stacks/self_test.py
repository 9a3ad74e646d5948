"""Calls of all kinds, in which the walk over the frames is compared with ``sys._getframe``.

The walk reads structures of the interpreter that differ between its versions. A difference, from a
build with other options for example, has to show here and not in a profile.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import TYPE_CHECKING, Any

from epprof_nb import _native

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

Frame = tuple[int, int, str, str, int, int | None]
"""Address of the code, offset of the instruction, file, function, first line, line."""


def read_both() -> tuple[list[Frame], list[Frame]]:
    """Return the frames of the caller, the innermost first: by the native walk, and by Python.

    Frames without a line are not code of a user: Python 3.13.0 shows one for each specialised
    constructor. They are left out.
    """
    walked, shown = _native.walk_stack(sys._getframe)  # noqa: SLF001
    return _with_lines(walked), _with_lines(shown)


def _with_lines(frames: Sequence[Frame]) -> list[Frame]:
    return [frame for frame in frames if frame[-1] is not None and frame[-1] >= 0]


def differing() -> list[str]:
    """Return the names of the shapes in which the two differ; empty if the walk is right."""
    found = []
    for name, shape in SHAPES.items():
        results: list[bool] = []

        def check(results: list[bool] = results) -> None:
            walked, shown = read_both()
            results.append(walked == shown and len(shown) > 1)

        shape(check)
        if not results or not all(results):
            found.append(name)
    return found


def _recursion(check: Callable[[], None], depth: int = 60) -> None:
    if depth:
        _recursion(check, depth - 1)
    else:
        check()


def _closure(check: Callable[[], None]) -> None:
    cell = 1

    def inner() -> int:
        check()
        return cell

    inner()


def _generator(check: Callable[[], None]) -> None:
    def numbers() -> Generator[int, None, None]:
        check()
        yield 1
        yield from others()

    def others() -> Iterator[int]:
        check()
        yield 2

    for _ in numbers():
        check()


def _coroutine(check: Callable[[], None]) -> None:
    async def inner() -> None:
        check()

    async def outer() -> None:
        await inner()
        check()

    try:
        outer().send(None)
    except StopIteration:
        check()


def _callback_of_c(check: Callable[[], None]) -> None:
    def checked(*numbers: int) -> int:
        check()
        return sum(numbers)

    sorted([2, 1], key=checked)
    functools.reduce(checked, [1, 2])
    functools.partial(checked, 1)()


class _Constructed:
    def __init__(self, check: Callable[[], None]) -> None:
        self._check = check
        check()

    @property
    def value(self) -> None:
        return self._check()

    def __enter__(self) -> None:
        self._check()

    def __exit__(self, *_: object) -> None:
        self._check()

    def __getitem__(self, item: object) -> None:
        self._check()

    def __del__(self) -> None:
        self._check()


def _methods(check: Callable[[], None]) -> None:
    for _ in range(20):  # the interpreter specialises the calls after some
        made = _Constructed(check)
        with made:
            made[0]
        made.value  # noqa: B018


def _exception(check: Callable[[], None]) -> None:
    try:
        int("no number")
    except ValueError:
        check()
    finally:
        check()


def _comprehension(check: Callable[[], None]) -> None:
    [check() for _ in range(2)]  # type: ignore[func-returns-value]
    {i: check() for i in range(2)}  # type: ignore[func-returns-value]


def _executed(check: Callable[[], None]) -> None:
    for name in ("plain.py", "n\xe4me.py", "\u540d\u524d.py", "\U0001d11e.py"):
        namespace: dict[str, Any] = {"check": check}
        code = compile("\n\ndef function():\n    check()\nfunction()", name, "exec")
        exec(code, namespace)  # noqa: S102


def _long_function(check: Callable[[], None]) -> None:
    # Jumps over more than fit into one byte, and lines that go back.
    body = "\n".join(f"    a{i} = [{i},\n        {i}]" for i in range(300))
    namespace: dict[str, Any] = {"check": check}
    text = f"def function():\n{body}\n    return (\n        a299,\n        check(),\n    )\n"
    exec(text, namespace)  # noqa: S102
    namespace["function"]()


def _class_body(check: Callable[[], None]) -> None:
    class _Body:
        check()


def _thread(check: Callable[[], None]) -> None:
    thread = threading.Thread(target=_recursion, args=(check, 3))
    thread.start()
    thread.join()


SHAPES: dict[str, Callable[[Callable[[], None]], None]] = {
    "call": lambda check: check(),
    "recursion": _recursion,
    "closure": _closure,
    "generator": _generator,
    "coroutine": _coroutine,
    "callback of C": _callback_of_c,
    "methods": _methods,
    "exception": _exception,
    "comprehension": _comprehension,
    "executed text": _executed,
    "long function": _long_function,
    "class body": _class_body,
    "thread": _thread,
}
