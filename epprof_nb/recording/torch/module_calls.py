"""Calls of PyTorch modules: each call of ``torch.nn.Module`` is an op named after its path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb import _native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from epprof_nb.recording.torch.cached_calls import CachedCalls
    from epprof_nb.recording.torch.module_paths import ModulePaths


_ATTRIBUTES = (
    "__annotations__", "__closure__", "__code__", "__defaults__", "__doc__", "__globals__",
    "__kwdefaults__", "__module__", "__name__", "__qualname__",
)  # fmt: skip
"""Attributes of functions."""


def recorded_call(
    original: Callable[..., Any], paths: ModulePaths, cached: CachedCalls
) -> _native.RecordedModule:
    """Wrap ``torch.nn.Module.__call__``."""
    import torch

    is_known = _native.engine_is_known()
    recorded = _native.RecordedModule(
        original,
        paths.known,
        paths.find,
        vars(torch.compiler),
        torch.compiler.is_compiling,
        # Neither has a public name.
        None if is_known else torch.autograd._get_sequence_nr,  # noqa: SLF001
        None if is_known else torch._C._current_graph_task_id,  # noqa: SLF001
        cached.begin,
        cached.plain,
        cached.takes_cache,
    )
    recorded.__wrapped__ = original  # for `inspect.signature`
    # Code that takes it for a function reads these: `torch.compile` refuses it otherwise.
    for name in _ATTRIBUTES:
        if hasattr(original, name):
            setattr(recorded, name, getattr(original, name))
    return recorded


def classes_with_own_call(module_type: type) -> Iterator[type]:
    """Yield the subclasses that have the ``__call__`` of `module_type` in their own namespace.

    They contain ``__call__ = nn.Module.__call__`` for type checkers. In a class that was defined in
    an earlier recording, it is the wrapper of that recording.
    """
    original = vars(module_type)["__call__"]
    todo, seen = [module_type], {id(module_type)}  # some classes have no hash
    while todo:
        subclasses: list[type] = type.__subclasses__(todo.pop())
        for known in subclasses:
            if id(known) in seen:
                continue
            seen.add(id(known))
            todo.append(known)
            call = vars(known).get("__call__")
            if isinstance(call, _native.RecordedModule):
                call = call.__wrapped__
            if call is original:
                yield known
