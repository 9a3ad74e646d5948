"""Paths of ``torch.nn`` modules in their model, such as ``model.encoder.layers.3.self_attn``."""

from __future__ import annotations

import sys
import weakref
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from epprof_nb import _native
from epprof_nb.recording.frameworks.framework_ops import kind_id
from epprof_nb.recording.ranges import range_sources
from epprof_nb.util.user_errors import USER_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    _Entry = tuple[int, int, bool, tuple[tuple[str, int, bool], ...]]

_WRAPPERS = ("torch.nn.parallel.", "torch.distributed.", "torch._dynamo.")
"""Modules of torch with classes that wrap a model. Paths omit the wrapper's attribute."""
_COMPILED = "torch._dynamo."
"""Module of torch with the class that wraps a compiled model."""
_WRAPPED = ("module", "_orig_mod")
_IN_COMPILED = "(in a compiled module)"
"""Stands for the class of the module that a compiled module wraps."""
_MAX_SCANS = 8
"""How often a session lists the modules of one model, to which modules may be added."""
_MAX_EARLY_MODULES = 1000
"""How many modules get their paths before the profiled code; a thousand take about 2 ms."""
_MAX_KEPT_MODULES = 10_000
"""How many modules keep their paths; a thousand take about 0.1 ms to compare."""
_MAX_KEPT_MODELS = 1_000
"""How many models outside of the user's namespace may keep their paths."""


class ModulePaths:
    """The paths of the modules that were called in a session.

    The root of a path is the name of the largest model in the user's namespace that contains the
    module. Without such a model, it is the class of the outermost module that was called.

    The paths are kept from one session to the next, as long as the models consist of the same
    modules.

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
        self._references: dict[int, _Reference] = {}
        # By the id of a class, which is kept: some have no hash.
        self._class_names: dict[int, tuple[type, str]] = {}
        self._scans: dict[int, int] = {}
        self._outermost: list[weakref.ref[Any]] = []
        self._kept: list[_KeptModel] = []
        self._kept_names: list[tuple[str, int]] = []
        self._kept_numbers: dict[int, int] = {}
        self._renumbered = _native.modules_renumbered  # modules may die after the interpreter's

    def find(self, module: Any) -> int | None:  # noqa: ANN401 - torch.nn.Module
        """Return the number of an unknown module; None if its call should not be an op.

        ``torch.nn.Module.__call__`` accepts other objects that have what it reads.
        """
        if self._is_tracing() or not issubclass(type(module), self._module_type):
            return None
        for found in self._models_of_user():
            self._add(found)
            if id(module) in self.known:
                return self.known[id(module)]
        if len(self._outermost) < _MAX_KEPT_MODELS:
            self._outermost.append(weakref.ref(module))
        self._add(_paths_below(module, type(module).__name__))
        return self.known[id(module)]

    def find_models(self) -> None:
        """Begin a session: find the paths of the user's models, or use the kept ones.

        Otherwise, the first call of a model would take as much longer.
        """
        if self._is_kept():
            self.known.clear()  # others that the last session has found
            self.known.update(self._kept_numbers)
            self._renumbered()
            self._scans.clear()
            self._outermost.clear()
            return
        self.forget()
        if self._is_tracing():
            return
        left = _MAX_EARLY_MODULES
        for found in self._models_of_user():
            left -= len(found)
            if left < 0:
                return
            self._add(found)

    @property
    def classes(self) -> list[type]:
        """The classes of the modules, without those that wrap a compiled module of any class."""
        return [own for own, name in self._class_names.values() if name is not _IN_COMPILED]

    def keep(self) -> None:
        """End a session: keep the paths of all models for the next one."""
        if self._is_tracing() or (self._is_kept() and not self._outermost):
            return
        kept = (model.root for model in self._kept)
        outermost = [root for ref in (*kept, *self._outermost) if (root := ref()) is not None]
        self.forget()
        models = self._models_of_user()
        models += [_paths_below(root, type(root).__name__) for root in outermost]
        left = _MAX_KEPT_MODULES
        for paths in models:
            root = paths[0][1]
            left -= len(paths)
            if id(root) in self.known or left < 0:
                continue
            self._add(paths)
            with suppress(*USER_ERRORS):
                self._kept.append(_KeptModel(weakref.ref(root), _entries_of(root)))
        self._kept_names = self._names_of_models()
        self._kept_numbers = dict(self.known)

    def forget(self) -> None:
        """Forget all paths."""
        for found in (
            self.known, self._described, self._references, self._class_names, self._scans,
            self._outermost, self._kept, self._kept_numbers,
        ):  # fmt: skip
            found.clear()
        self._renumbered()

    def _is_kept(self) -> bool:
        """Return whether the models of the kept paths consist of the same modules."""
        return (
            bool(self._kept)
            and self._kept_names == self._names_of_models()
            and all(_native.model_matches(model.root(), model.entries) for model in self._kept)
        )

    def _names_of_models(self) -> list[tuple[str, int]]:
        return [(name, id(model)) for name, model in self._users_models()]

    def described(self, module: Any) -> tuple[str, str] | None:  # noqa: ANN401 - torch.nn.Module
        """Return path and class of a module; None if its calls should not be ops."""
        if id(module) not in self.known:
            self.find(module)
        return self._described.get(id(module))

    def _models_of_user(self) -> list[list[tuple[str, Any]]]:
        """Return the paths of models in the user's namespace that may have unknown modules.

        The largest model is the first.
        """
        found: dict[int, list[tuple[str, Any]]] = {}
        for name, value in self._users_models():
            scans = self._scans.get(id(value), 0)
            if id(value) not in found and scans < _MAX_SCANS:
                self._scans[id(value)] = scans + 1
                found[id(value)] = _paths_below(value, name)
        return sorted(found.values(), key=len, reverse=True)

    def _users_models(self) -> Iterator[tuple[str, Any]]:
        """Yield the names and models of the user's namespace."""
        namespace = getattr(sys.modules.get("__main__"), "__dict__", {})
        for name, value in list(namespace.items()):
            # IPython's variables, such as _ and _12, are not the user's names. `type` runs no code
            # of proxies, unlike `isinstance`. `globals()[1] = 2` is possible.
            if type(name) is not str or name.startswith("_"):
                continue
            if issubclass(type(value), self._module_type):
                yield name, value

    def _add(self, paths: list[tuple[str, Any]]) -> None:
        known, described, references = self.known, self._described, self._references
        for path, module in paths:
            key, own = id(module), type(module)
            if key in known:
                continue
            _, class_name = self._class_names.get(id(own)) or (own, self._class_name(own))
            if class_name is _IN_COMPILED:  # whose attributes come from the module in it
                class_name = type(module._modules.get("_orig_mod", module)).__name__  # noqa: SLF001
            references[key] = reference = _Reference(module, self._forget)
            reference.key = key
            described[key] = path, class_name
            known[key] = _number(path, class_name, own.__name__, _is_on_host(module))

    def _class_name(self, own: type) -> str:
        """Return the name of a class for its modules, and register the user's forward pass."""
        if _is_of(own, _COMPILED):
            name = _IN_COMPILED
        else:
            name = own.__name__
            forward = getattr(own, "forward", None)
            if not str(getattr(forward, "__module__", "torch.")).startswith("torch."):
                range_sources.register_class(name, forward)
        self._class_names[id(own)] = own, name
        return name

    def _forget(self, reference: _Reference) -> None:
        for entries in (
            self.known, self._described, self._references, self._kept_numbers, self._scans,
        ):  # fmt: skip
            entries.pop(reference.key, None)
        self._renumbered()


class _Reference(weakref.ref[Any]):
    """A weak reference to a module, with the module's ``id``."""

    __slots__ = ("key",)
    key: int


class _KeptModel(NamedTuple):
    """A model whose paths are kept, and its modules as `_native.model_matches` takes them."""

    root: weakref.ref[Any]
    entries: tuple[_Entry, ...]


def _entries_of(root: Any) -> tuple[_Entry, ...]:  # noqa: ANN401
    entries: list[_Entry] = []
    seen: set[int] = set()

    def visit(module: Any) -> None:  # noqa: ANN401 - in the order of `_paths_below`
        seen.add(id(module))
        own, children = len(entries), []
        entries.append((id(module), id(type(module)), _is_on_host(module), ()))
        for name, child in module._modules.items():  # noqa: SLF001
            if child is not None:
                is_first = id(child) not in seen
                children.append((name, id(child), is_first))
                if is_first:
                    visit(child)
        entries[own] = (*entries[own][:3], tuple(children))

    visit(root)
    return tuple(entries)


def _paths_below(root: Any, root_path: str) -> list[tuple[str, Any]]:  # noqa: ANN401
    """Return the path of each module of a model, with the module, in the order of the model."""
    paths: list[tuple[str, Any]] = []
    with suppress(*USER_ERRORS):  # the user's class may hold its modules in another way
        _add_paths(root, root_path, set(), paths)
    return paths or [(root_path, root)]


# A nested function that calls itself would be in a reference cycle with the modules, and keep them
# alive until the next collection.
def _add_paths(module: Any, path: str, seen: set[int], paths: list[tuple[str, Any]]) -> None:  # noqa: ANN401
    children = module._modules  # noqa: SLF001 - named_modules() takes three times as long
    seen.add(id(module))
    paths.append((path, module))
    for name, child in children.items():
        if child is not None and id(child) not in seen:
            is_wrapped = name in _WRAPPED and _is_of(type(module), _WRAPPERS)
            _add_paths(child, path if is_wrapped else f"{path}.{name}", seen, paths)


@lru_cache(maxsize=1 << 16)
def _number(path: str, class_name: str, wrapper: str, on_host: bool) -> int:  # noqa: FBT001 - hashed
    """Return the native number of the modules with this path, in all recordings."""
    forward, recompute, backward = _kinds_of(class_name, wrapper)
    return _native.module_add(_native.intern(path), forward, recompute, backward, on_host)


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


def _is_of(own: type, packages: str | tuple[str, ...]) -> bool:
    return f"{own.__module__}.".startswith(packages)


def _is_on_host(module: Any) -> bool:  # noqa: ANN401 - torch.nn.Module
    """Whether a module has its own parameters that are not on a CUDA GPU."""
    try:
        for parameter in list(module._parameters.values()):  # noqa: SLF001 - without submodules
            if parameter is not None and not parameter.is_cuda:
                return True
    except USER_ERRORS:  # the user's class may have parameters of another kind
        return True
    return False
