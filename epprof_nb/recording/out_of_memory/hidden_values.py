"""Values that only the interpreter leads to: of functions that wait, context variables, finalizers.

No code of proxies and metaclasses runs, unlike with `isinstance` and sets of types.
"""

from __future__ import annotations

import gc
import types
import weakref
from contextvars import Context, copy_context
from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.recording.out_of_memory.recognize_errors import class_name
from epprof_nb.recording.out_of_memory.traceback_lines import place_of, users_frames
from epprof_nb.recording.out_of_memory.variables import Root, frame_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_FRAMES = {
    types.CoroutineType: ("cr_frame", "cr_running"),
    types.GeneratorType: ("gi_frame", "gi_running"),
    types.AsyncGeneratorType: ("ag_frame", "ag_running"),
}
"""Attributes of functions that can wait: the frame, and whether it runs now."""


def hidden_values(program: str) -> Iterator[Root]:
    """Yield these values, of all threads; `program` is as in `users_frames`."""
    objects = gc.get_objects()
    waiting = [one for kind in _FRAMES for one in _native.instances_of(objects, kind)]
    contexts = _native.instances_of(objects, Context)
    del objects  # it would hold the dictionaries of frames, see `frame_variables`
    yield from _of_waiting(waiting, program)
    yield from _of_contexts([copy_context(), *contexts])
    yield from _of_finalizers()


def _of_waiting(functions: Iterable[object], program: str) -> Iterator[Root]:
    """Yield the variables of coroutines and generators of the user that wait to go on."""
    frames = []
    for function in functions:
        frame, is_running = (getattr(function, name) for name in _FRAMES[type(function)])
        if frame is not None and not is_running:
            frames.append((frame, frame.f_lineno))
    for frame, line in users_frames(frames, program):
        place = place_of(frame, line)
        where = f"in `{place.function}` ({place.file}:{line}), which waits"
        for name, value in frame_variables(frame).items():
            yield Root(name, value, "variable", where)


def _of_contexts(contexts: Iterable[Context]) -> Iterator[Root]:
    for context in contexts:
        for variable, value in context.items():
            if type(variable.name) is str:
                yield Root(variable.name, value, "variable", "value of a `ContextVar`")


def _of_finalizers() -> Iterator[Root]:
    """Yield the functions that `weakref.finalize` will call, and their arguments."""
    for info in list(weakref.finalize._registry.values()):  # type: ignore[attr-defined]  # noqa: SLF001
        function = info.func
        is_plain = type(function) is types.FunctionType
        name = function.__qualname__ if is_plain else class_name(type(function))
        for value in (info.args, info.kwargs, function):
            yield Root(name, value, "variable", "kept by `weakref.finalize`")
