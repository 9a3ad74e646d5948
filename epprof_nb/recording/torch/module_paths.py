"""Paths of ``torch.nn`` modules in their model, such as ``model.encoder.layers.3.self_attn``."""

from __future__ import annotations

import sys
import weakref
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.recording.frameworks.framework_ops import kind_id
from epprof_nb.recording.ranges import range_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_WRAPPERS = ("torch.nn.parallel.", "torch.distributed.", "torch._dynamo.")
"""Modules of torch with classes that wrap a model. Paths omit the wrapper's attribute."""
_COMPILED = "torch._dynamo."
"""Module of torch with the class that wraps a compiled model."""
_WRAPPED = ("module", "_orig_mod")
_MAX_SCANS = 8
"""How often a session lists the modules of one model, to which modules may be added."""
_MAX_EARLY_MODULES = 1000
"""How many modules get their paths before the profiled code; a thousand take about 4 ms."""


class ModulePaths:
    """The paths of the modules that were called in a session.

    The root of a path is the name of the largest model in the user's namespace that contains the
    module. Without such a model, it is the class of the outermost module that was called.

    Attributes
    ----------
    known
        The number of a module in the native log of calls, by its ``id``. Entries of modules that no
        longer exist are removed.

    Parameters
    ----------
    module_type
        ``torch.nn.Module``.
    is_tracing
        Returns whether torch is compiling, which calls its own modules.
    """

    def __init__(self, module_type: type, is_tracing: Callable[[], bool]) -> None:
        self.known: dict[int, int] = {}
        self._is_tracing = is_tracing
        self._module_type = module_type
        self._described: dict[int, tuple[str, str]] = {}
        self._references: dict[int, weakref.ref[Any]] = {}
        self._scans: dict[int, int] = {}

    def find(self, module: Any) -> int | None:  # noqa: ANN401 - torch.nn.Module
        """Return the number of an unknown module; None if its call should not be an op."""
        if self._is_tracing():
            return None
        for name, root in self._models_of_user():
            self._add_model(name, root)
            if id(module) in self.known:
                return self.known[id(module)]
        self._add_model(type(module).__name__, module)
        if id(module) not in self.known:  # its named_modules() fails or does not list it
            self._add(module, type(module).__name__)
        return self.known[id(module)]

    def find_models(self) -> None:
        """Find the paths of the user's models now, rather than during their first call."""
        if self._is_tracing():
            return
        left = _MAX_EARLY_MODULES
        for name, root in self._models_of_user():
            left -= len(_named_modules(root))
            if left < 0:
                return
            self._add_model(name, root)

    def described(self, module: Any) -> tuple[str, str] | None:  # noqa: ANN401 - torch.nn.Module
        """Return path and class of a module; None if its calls should not be ops."""
        if id(module) not in self.known:
            self.find(module)
        return self._described.get(id(module))

    def _models_of_user(self) -> Iterator[tuple[str, Any]]:
        """Yield the models in the user's namespace that may have unknown modules, largest first."""
        found: dict[int, tuple[int, str, Any]] = {}
        namespace = getattr(sys.modules.get("__main__"), "__dict__", {})
        for name, value in list(namespace.items()):
            # IPython's variables, such as _ and _12, are not the user's names. `type` runs no code
            # of proxies, unlike `isinstance`.
            if name.startswith("_") or not issubclass(type(value), self._module_type):
                continue
            scans = self._scans.get(id(value), 0)
            if id(value) not in found and scans < _MAX_SCANS:
                self._scans[id(value)] = scans + 1
                found[id(value)] = (len(_named_modules(value)), name, value)
        for _, name, value in sorted(found.values(), key=lambda model: -model[0]):
            yield name, value

    def _add_model(self, root_name: str, root: Any) -> None:  # noqa: ANN401
        paths: dict[str, str] = {}
        modules: dict[str, Any] = {}
        for name, module in _named_modules(root):
            parent, _, last = name.rpartition(".")
            if not name:
                path = root_name
            elif last in _WRAPPED and _is_wrapper(modules.get(parent)):
                path = paths[parent]
            else:
                path = f"{paths.get(parent, root_name)}.{last}"
            paths[name], modules[name] = path, module
            if id(module) not in self.known:
                self._add(module, path)

    def _add(self, module: Any, path: str) -> None:  # noqa: ANN401
        key = id(module)
        known, described, references = self.known, self._described, self._references

        def forget(_: object) -> None:
            known.pop(key, None)
            described.pop(key, None)
            references.pop(key, None)

        references[key] = weakref.ref(module, forget)
        class_name = _class_name(module)
        forward_method = getattr(type(module), "forward", None)
        if not str(getattr(forward_method, "__module__", "torch.")).startswith("torch."):
            range_sources.register_class(class_name, forward_method)
        forward, recompute, backward = _kinds_of(class_name, type(module).__name__)
        described[key] = (path, class_name)
        name = _native.intern(path)
        known[key] = _native.module_add(name, forward, recompute, backward, _is_on_host(module))


@lru_cache(maxsize=4096)
def _kinds_of(class_name: str, wrapper: str) -> tuple[int, int, int]:
    """Return the kinds of a class's forward passes, recomputations and backward passes."""
    args = {"class": class_name}
    if class_name != wrapper:  # whose calls differ from its module's
        args["wrapper"] = wrapper
    return (
        kind_id("module", "torch", **args),
        kind_id("recompute", "torch", **args),
        kind_id("backward", "torch", **args),
    )


def _class_name(module: Any) -> str:  # noqa: ANN401
    """Return the class of a module; for a compiled module, the class of the module in it."""
    if f"{type(module).__module__}.".startswith(_COMPILED):
        # Its attributes come from the module in it.
        module = module._modules.get("_orig_mod", module)  # noqa: SLF001
    return type(module).__name__


def _is_on_host(module: Any) -> bool:  # noqa: ANN401 - torch.nn.Module
    """Whether a module has its own parameters that are not on a CUDA GPU."""
    try:
        parameters = list(module._parameters.values())  # noqa: SLF001 - submodules count their own
        return not all(parameter is None or parameter.is_cuda for parameter in parameters)
    except Exception:  # noqa: BLE001 - the user's class may have parameters of another kind
        return True


def _named_modules(root: Any) -> list[tuple[str, Any]]:  # noqa: ANN401
    try:
        return list(root.named_modules())
    except Exception:  # noqa: BLE001 - the user's class may override it
        return []


def _is_wrapper(module: object) -> bool:
    return f"{type(module).__module__}.".startswith(_WRAPPERS)
