"""Ops of ``torch.profiler.record_function``, which torch uses for optimizers and data loaders."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.recording_costs import OPS
from epprof_nb.recording.frameworks.framework_ops import CALL, RANGE, kind_id

if TYPE_CHECKING:
    from collections.abc import Callable

_OPTIMIZER = ("Optimizer.step#", "Optimizer.zero_grad#")
_DATA_LOADER = "enumerate(DataLoader)#"
WAITING_FOR_DATA = "waiting for data"
_OP = "_epprof_nb_op"
"""Attribute of a ``record_function`` object with its op."""


def recorded_enter(
    original: Callable[[Any], Any], is_off: Callable[[], bool]
) -> Callable[[Any], Any]:
    """Wrap ``record_function.__enter__``."""
    import torch

    is_compiling = torch.compiler.is_compiling

    def enter(self: Any) -> object:  # noqa: ANN401 - record_function
        if is_compiling():
            return original(self)
        cost_begin = _native.cost_begin(OPS)
        if not is_off():
            setattr(self, _OP, _open(str(self.name), sys._getframe(1)))  # noqa: SLF001
        _native.cost_end(OPS, cost_begin)
        return original(self)

    return enter


def recorded_exit(original: Callable[..., Any], is_off: Callable[[], bool]) -> Callable[..., Any]:
    """Wrap ``record_function.__exit__``."""
    import torch

    is_compiling = torch.compiler.is_compiling

    def leave(self: Any, *error: Any) -> object:  # noqa: ANN401 - record_function
        if is_compiling():
            return original(self, *error)
        try:
            return original(self, *error)
        finally:
            op_id = self.__dict__.pop(_OP, 0)
            if op_id and not is_off():
                _native.pop_of_any_thread(op_id)

    return leave


def _open(name: str, frame: Any) -> int:  # noqa: ANN401 - types.FrameType
    """Open the op of a range; `frame` belongs to the function that enters it."""
    if name.startswith(_OPTIMIZER):
        method = name.partition("#")[2]  # such as AdamW.step
        return _native.push(_native.intern(method), CALL, kind_id("optimizer", "torch"))
    if name.startswith(_DATA_LOADER):
        workers = getattr(frame.f_locals.get("self"), "_num_workers", None)
        args = {"workers": workers} if isinstance(workers, int) else {}
        kind = kind_id("data", "torch", **args)
        return _native.push(_native.intern(WAITING_FOR_DATA), CALL, kind)
    return _native.push(_native.intern(name), RANGE, kind_id("range", "torch"))
