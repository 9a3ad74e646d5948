"""Backward passes of PyTorch: an op for each, and how the ops of modules in it are found.

The nodes of a graph run in descending order of their numbers, so the nodes of one module call are
consecutive. Their op stays open until the next module's nodes begin. Sums of gradients run after
the node that produced them. Nodes that accumulate gradients have no number and also follow that
node.

On a GPU, the native core reads the running node of a thread when the thread calls a CUDA function.
Elsewhere, a hook before the first of a module's nodes opens the op.
`native/torch/module_call_of_node.cpp` decides to which call a node belongs.
"""

from __future__ import annotations

from time import thread_time_ns
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.core.recording_costs import BACKWARD
from epprof_nb.recording.frameworks.framework_ops import kind_id
from epprof_nb.recording.torch.backward_hooks import BackwardHooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from epprof_nb.recording.torch.backward_counts import BackwardCounts


def recorded_backward(
    original: Callable[..., Any],
    counts: BackwardCounts,
    is_off: Callable[[], bool],
    is_compiled: Callable[[], bool],
) -> Callable[..., Any]:
    """Wrap the function of torch that runs the autograd engine."""
    import torch

    task = torch._C._current_graph_task_id  # noqa: SLF001 - there is no public name
    hooks = BackwardHooks(counts)
    name = _native.intern("backward")
    kind = kind_id("autograd", "torch")

    def run_backward(t_outputs: Any, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401
        cost_begin = thread_time_ns()
        if is_off():
            return original(t_outputs, *args, **kwargs)
        compiled = is_compiled()
        follows = not compiled and can_follow(t_outputs)
        number, op_id = _native.pass_begin(name, kind, follows)
        remove_hooks = None
        outer = counts.enter(op_id, is_nested=task() >= 0)
        try:
            if compiled:
                counts.compiled += 1
            elif not follows:
                keeps_graph = len(args) < 2 or bool(args[1])  # as the engine's second option
                remove_hooks = hooks.add(number, t_outputs, keeps_graph=keeps_graph)
            _native.cost_add(BACKWARD, cost_begin)
            return original(t_outputs, *args, **kwargs)
        finally:
            cost_begin = thread_time_ns()
            counts.leave(outer)
            if remove_hooks is not None:
                remove_hooks()
            nodes, unlinked = _native.pass_end(number, op_id)
            counts.nodes += nodes
            counts.unlinked += unlinked
            _native.cost_add(BACKWARD, cost_begin)

    return run_backward


def can_follow(outputs: Iterable[Any]) -> bool:
    """Whether the native core can follow the nodes of a backward pass that begins now.

    It reads the running node whenever a thread calls a CUDA function, so it cannot measure the host
    time of modules on the CPU.

    Parameters
    ----------
    outputs
        Tensors or edges with which the pass begins.
    """
    return (
        _native.cupti_has_callbacks()
        and _native.engine_reads_nodes()
        and not _native.modules_on_host()
        and any(getattr(output, "is_cuda", True) for output in outputs)
    )
