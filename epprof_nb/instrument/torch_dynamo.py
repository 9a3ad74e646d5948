"""Support for ``torch.compile``: TorchDynamo skips the markers of `epprof_nb.instrument.markers`.

TorchDynamo cannot trace calls to unknown C functions: a model defined in a profiled cell would
not be compiled, and ``fullgraph=True`` would raise. The markers are therefore registered as
functions without effect. Importing TorchDynamo takes seconds, so this happens when other code
imports it.
"""

from __future__ import annotations

import contextlib
import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any

from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import ModuleType

    Marker = Callable[[int], object]

_DYNAMO = "torch._dynamo"
_lock = fork_safe_lock()
_registered = False


def register_markers(calls: Iterable[Marker], bodies: Iterable[Marker]) -> None:
    """Make TorchDynamo skip the markers, now or when it is imported; once per process.

    Parameters
    ----------
    calls
        Markers that are called.
    bodies
        Markers that return a context manager.
    """
    global _registered  # noqa: PLW0603 - process-wide state
    with _lock:
        if _registered:
            return
        _registered = True
    replacements = {**dict.fromkeys(calls, _nothing), **dict.fromkeys(bodies, _no_body)}
    dynamo = sys.modules.get(_DYNAMO)
    if dynamo is None:
        sys.meta_path.insert(0, _AfterImport(replacements))
    else:
        _substitute(dynamo, replacements)


def _substitute(dynamo: ModuleType, replacements: Mapping[Marker, Marker]) -> None:
    # Available since torch 2.6.
    substitute = getattr(dynamo, "substitute_in_graph", None)
    if substitute is not None:
        for marker, replacement in replacements.items():
            substitute(marker, skip_signature_check=True)(replacement)


def _nothing(key: int) -> None:
    """Replace a marker inside a compiled graph."""


def _no_body(key: int) -> contextlib.nullcontext[None]:  # noqa: ARG001 - as the marker
    """Replace a marker that returns a context manager."""
    return contextlib.nullcontext()


class _AfterImport:
    """Import hook that registers the markers once ``torch._dynamo`` is imported."""

    def __init__(self, replacements: Mapping[Marker, Marker]) -> None:
        self.replacements = replacements
        self.loader: Any = None

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _DYNAMO:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            self.loader, spec.loader = spec.loader, self  # type: ignore[assignment]
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self.loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        _substitute(module, self.replacements)
