"""Lines of a notebook that submit tasks: Dask carries them to the workers as an annotation."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.recording.statements.statement_registry import (
    TEXT_LIMIT,
    Cell,
    Statement,
    register,
    statement_in,
)
from epprof_nb.util.fork_safe_lock import fork_safe_lock
from epprof_nb.util.format import elide

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

ANNOTATION = "epprof_line"
_MAX_LINES = 10_000
_lines: dict[tuple[Any, ...], tuple[int, int]] = {}
"""Lines of notebooks, to the name and the key of a statement in this process."""
_lock = fork_safe_lock()


running_line: ContextVar[Any] = ContextVar("running_line", default=None)
"""The line that submitted the task that runs, on a thread or as a coroutine."""


def annotating(submit: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that submits a graph as `submit`, annotated with the line of the cell.

    Without a statement of a profiled cell among its callers, it does the same as `submit`.
    """

    def submitted(*args: Any, **more: Any) -> Any:  # noqa: ANN401
        statement = _statement()
        if statement is None:
            return submit(*args, **more)
        line = [statement.cell.name, statement.line, statement.end_line, statement.text]
        with sys.modules["dask"].annotate(**{ANNOTATION: line}):
            return submit(*args, **more)

    return submitted


def inheriting(submit: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that submits a graph as `submit`, in a task with the line of the task."""

    def submitted(*args: Any, **more: Any) -> Any:  # noqa: ANN401
        line = running_line.get()
        if line is None:
            return submit(*args, **more)
        with sys.modules["dask"].annotate(**{ANNOTATION: line}):
            return submit(*args, **more)

    return submitted


def _statement() -> Statement | None:
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001
    while frame is not None:
        found = statement_in(frame)
        if found is not None:
            return found
        frame = frame.f_back
    return None


def line_of(worker: Any, key: Any) -> tuple[Any, tuple[int, int] | None]:  # noqa: ANN401
    """Return the line that submitted a task, and the name and statement of its op, if known.

    Parameters
    ----------
    worker
        The worker, of a version of Dask that may not be known.
    key
        Key of the task.
    """
    try:
        line = worker.state.tasks[key].annotations[ANNOTATION]
        return line, _lines.get(tuple(line)) or _register(*line)
    except Exception:  # noqa: BLE001 - another version of Dask, or no such annotation
        return None, None


def _register(cell: str, line: int, end_line: int, text: str) -> tuple[int, int]:
    with _lock:
        if len(_lines) >= _MAX_LINES:
            raise ValueError("the notebook has too many lines")
        shown = elide(str(text), TEXT_LIMIT, tail=TEXT_LIMIT // 3)
        statement = Statement(
            Cell(elide(str(cell), TEXT_LIMIT, tail=0), ""), int(line), int(end_line), shown
        )
        known = _native.intern(shown), register([statement], [-1])
        _lines[cell, line, end_line, text] = known
        return known
