"""Ops of the modules in code that TorchInductor has compiled.

While a session is open, the functions of the generated code announce the kernel that they call
next. The ops of its modules are then open, as in eager mode. All launches belong to them, also
library kernels and captures of CUDA graphs. A kernel of several modules has its own op below the
innermost module that contains them all.
"""

from __future__ import annotations

import sys
from functools import cached_property, partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from epprof_nb import _native
from epprof_nb.recording.frameworks.framework_ops import FUSED, kind_id
from epprof_nb.recording.torch import inductor_origins
from epprof_nb.recording.torch.compiled_calls import CompiledCalls, Place, Roots, root_names
from epprof_nb.recording.torch.inductor_lines import (
    MarkedFunction,
    marked_functions,
    restore,
    switch,
)
from epprof_nb.util.after_import import after_import, cancel
from epprof_nb.util.format import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from epprof_nb.recording.frameworks.patches import Switch
    from epprof_nb.recording.torch.backward_counts import BackwardCounts
    from epprof_nb.recording.torch.module_paths import ModulePaths
    from epprof_nb.recording.torch.modules_of_inductor_lines import CompiledCode, Paths

_CODECACHE = "torch._inductor.codecache"
_MAX_NAMED = 4
"""Maximum number of modules in the name of a fused kernel's op."""

_T = TypeVar("_T")
_Op = tuple[int, int]
"""Native ids of the name and the kind of an op."""

_functions: WeakKeyDictionary[ModuleType, tuple[CompiledCode | None, list[MarkedFunction]]] = (
    WeakKeyDictionary()
)
"""Marked functions of each module of generated code, and the code that they were made for."""


class CompiledModules:
    """The modules in compiled code, in one session.

    Parameters
    ----------
    paths
        The paths of the modules.
    backward
        The running backward passes.
    switch
        Whether the session records.
    """

    def __init__(self, paths: ModulePaths, backward: BackwardCounts, switch: Switch) -> None:
        self._paths = paths
        self._backward = backward
        self._switch = switch
        self._marked: list[MarkedFunction] = []
        self._ops: dict[_Op, _Op] = {}
        self._unknown: set[str] = set()
        self._failure: str | None = None

    def start(self) -> None:
        """Start now, or when torch compiles for the first time."""
        after_import(_CODECACHE, self._begin)

    def _begin(self) -> None:
        inductor_origins.listeners.append(self._mark)
        for module in list(getattr(sys.modules[_CODECACHE].PyCodeCache, "modules", ())):
            if hasattr(module, "call"):
                self._mark(module)

    def _mark(self, module: ModuleType) -> None:
        """Let the functions of generated code mark their kernels from now on."""
        path = str(module.__file__)
        code = inductor_origins.known.get(path)
        try:
            functions = _marked(module, code)
        except Exception as error:  # noqa: BLE001 - the compiled code must run in any case
            self.fail(error)
            return
        self._marked += functions
        if code is None:
            switch(functions, module, lambda: self._begin_unknown(path))
        else:
            switch(functions, module, _Lines(code, self).begin)

    def _begin_unknown(self, path: str) -> Callable[[int], None]:
        if self._switch.on:
            self._unknown.add(path)
        return _nothing

    def fail(self, error: Exception) -> None:
        """Keep the first error for a note."""
        if self._failure is None:
            self._failure = f"{type(error).__name__}: {error}"

    def stop(self) -> None:
        """Restore the code of all functions."""
        cancel(_CODECACHE, self._begin)
        if self._mark in inductor_origins.listeners:
            inductor_origins.listeners.remove(self._mark)
        restore(self._marked)
        self._marked = []

    def notes(self) -> list[str]:
        """Return notes on compiled code whose kernels are not linked to modules."""
        notes = []
        if self._unknown:
            graphs = plural(len(self._unknown), "compiled graph")
            notes.append(
                f"Kernels of {graphs} belong to the compiled module as a whole, because torch "
                "compiled them before epprof_nb was imported. Import it before the model runs and, "
                "if they come from torch's cache on disk, compile once with "
                "TORCHINDUCTOR_FORCE_DISABLE_CACHES=1."
            )
        failure = self._failure or next(iter(inductor_origins.failures), None)
        if failure:
            notes.append(f"Kernels of compiled code are not linked to modules: {failure}")
        return notes

    @property
    def is_on(self) -> bool:
        """Whether the session records."""
        return self._switch.on

    @property
    def backward_op(self) -> int:
        """The op of the running backward pass; 0 if none is running."""
        return self._backward.parent

    @cached_property
    def calls(self) -> CompiledCalls:
        """The calls of compiled code."""
        return CompiledCalls()

    def ops_of(self, modules: Paths, roots: Roots, *, is_backward: bool) -> tuple[_Op, ...]:
        """Return the ops of a kernel from the outermost to the innermost one."""
        op_type = "backward" if is_backward else "compiled"
        chains = {tuple(self._described(chain, roots)) for chain in modules}
        common = _beginning_of_all(list(chains))
        ops = tuple(
            self._op(path, kind_id(op_type, "torch", **{"class": class_name}))
            for path, class_name in common
        )
        if len(chains) < 2:
            return ops
        name, paths = _fused_name([chain[-1][0] if chain else "" for chain in chains])
        return (*ops, self._op(name, kind_id(FUSED[is_backward], "torch", modules=paths)))

    def _op(self, name: str, kind: int) -> _Op:
        """Return an op, always the same object: open ops are recognized by identity."""
        op = (_native.intern(name), kind)
        return self._ops.setdefault(op, op)

    def _described(self, chain: tuple[str, ...], roots: Roots) -> list[tuple[str, str]]:
        """Return path and class of the known modules of a chain."""
        found = (roots.find(path) for path in chain)
        described = (self._paths.described(module) for module in found if module is not None)
        return [step for step in described if step is not None]


def _marked(module: ModuleType, code: CompiledCode | None) -> list[MarkedFunction]:
    """Return the marked functions of a module of generated code, created once."""
    known = _functions.get(module)
    if known is None or known[0] is not code:
        if known is not None:  # compiled again
            restore(known[1])
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        modules = code.modules if code is not None else {}
        known = _functions[module] = (code, marked_functions(module, source, modules))
    return known[1]


def _beginning_of_all(values: Sequence[Sequence[_T]]) -> list[_T]:
    """Return the common beginning of all sequences."""
    columns = zip(*values, strict=False)
    return [column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns)]


def _fused_name(paths: list[str]) -> tuple[str, list[str]]:
    """Return the name of a kernel of several modules, and their paths.

    Examples
    --------
    >>> _fused_name(["model.block.0.norm", "model.block.0", "model.block.1"])[0]
    'model.block.(0 + 0.norm + 1)'
    >>> _fused_name(["model.head", ""])[0]
    'model.(head + no module)'
    """
    known = sorted(path for path in paths if path)
    parts = [path.split(".")[:-1] for path in known]
    root = "".join(f"{part}." for part in _beginning_of_all(parts))
    shown = [path.removeprefix(root) for path in known]
    shown += ["no module"] * (len(paths) - len(known))
    if len(shown) > _MAX_NAMED:
        shown = [*shown[: _MAX_NAMED - 1], f"{len(shown) - _MAX_NAMED + 1} more"]
    return f"{root}({' + '.join(shown)})", known


def _nothing(line: int) -> None:
    """Do nothing; replaces a function that switches ops."""


class _Lines:
    """The ops of the lines of one file of generated code, in one session."""

    def __init__(self, code: CompiledCode, session: CompiledModules) -> None:
        self._code = code
        self._session = session
        self._is_backward = code.kind == "backward"
        chains = (chain for paths in code.modules.values() for chain in paths or ())
        self._names = root_names(path for chain in chains for path in chain)
        self._place: Place | None = None
        # By the objects of a call, of which there are few.
        self._ops: dict[Roots, dict[int, tuple[_Op, ...]]] = {}

    def begin(self) -> Callable[[int], None]:
        """Return the function that generated code calls before its kernels, in one call."""
        session = self._session
        if not session.is_on:
            return _nothing
        try:
            if self._is_backward:
                roots = session.calls.backward()
            else:
                roots, self._place = session.calls.forward(
                    self._names, self._place, has_backward=self._code.kind == "forward"
                )
        except Exception as error:  # noqa: BLE001 - the compiled code must run in any case
            session.fail(error)
            return _nothing
        return _nothing if roots is None else self._changing(roots)

    def _changing(self, roots: Roots) -> Callable[[int], None]:
        known = self._ops.setdefault(roots, {-1: (), 0: ()})
        parent = self._session.backward_op if self._is_backward else 0
        find = partial(self._find, roots)
        return partial(_native.switch_ops, [], known, find, parent)

    def _find(self, roots: Roots, line: int) -> tuple[_Op, ...]:
        ops: tuple[_Op, ...] = ()
        try:
            modules = self._code.modules.get(line)
            if modules:
                ops = self._session.ops_of(modules, roots, is_backward=self._is_backward)
        except Exception as error:  # noqa: BLE001 - the compiled code must run in any case
            self._session.fail(error)
        self._ops[roots][line] = ops
        return ops
