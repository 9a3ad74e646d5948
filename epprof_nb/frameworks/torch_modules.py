"""Ops of PyTorch modules: each call of ``torch.nn.Module`` is an op named after its path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.frameworks.framework_ops import CALL

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.frameworks.module_paths import ModulePaths
    from epprof_nb.frameworks.patches import Switch
    from epprof_nb.frameworks.sequence_log import SequenceLog
    from epprof_nb.frameworks.torch_backward import BackwardCounts


def recorded_call(
    original: Callable[..., Any],
    paths: ModulePaths,
    log: SequenceLog,
    backward: BackwardCounts,
    switch: Switch,
) -> Callable[..., Any]:
    """Wrap ``torch.nn.Module.__call__``.

    TorchDynamo traces the wrapper, so its first statement must lead to the original.
    """
    import torch

    is_compiling = torch.compiler.is_compiling
    next_number = torch.autograd._get_sequence_nr  # noqa: SLF001 - there is no public name
    task = torch._C._current_graph_task_id  # noqa: SLF001 - the same
    push, pop = _native.push, _native.pop
    known, find = paths.known, paths.find
    local = log.local

    def call_module(self: Any, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401
        if is_compiling():
            return original(self, *args, **kwargs)
        ops = (known.get(id(self)) or find(self)) if switch.on else None
        if ops is None:
            return original(self, *args, **kwargs)
        calls = local.calls
        outer = calls.current
        if backward.in_progress and task() >= 0:
            op_id = push(ops.name, CALL, ops.recompute)
        else:
            calls.is_worker = False
            op_id = push(ops.name, CALL, ops.forward)
        calls.change(next_number(), (outer, ops))
        try:
            return original(self, *args, **kwargs)
        finally:
            calls.change(next_number(), outer)
            pop(op_id)

    return call_module
