"""Ops of the backward pass: the module whose forward pass created the nodes that run.

The nodes of a graph run in descending order of their numbers, so those of one module call form one
stretch. A hook before the first node of each stretch opens the module's op. It stays open until the
next stretch begins, because sums of gradients run after the node that made them, and because nodes
that accumulate gradients have no number and follow the node that produced the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from epprof_nb import _native
from epprof_nb.frameworks.framework_ops import CALL, kind_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from epprof_nb.frameworks.sequence_log import SequenceLog

    _AddHooks = Callable[[Iterable[Any], Callable[[Any], None]], Callable[[], None]]
    """Adds a hook before each node; returns the function that removes it."""


@dataclass(slots=True)
class BackwardCounts:
    """Numbers of nodes that ran in the backward passes of a session, and passes in progress.

    Attributes
    ----------
    nodes, unlinked
        Nodes with a number, and those of them whose module call cannot be told.
    compiled
        Backward passes that compiled autograd executed, whose nodes have no hooks.
    failure
        The first error of linking.
    in_progress
        Backward passes that are running.
    parent
        The op of the innermost pass that runs, if all passes are nested; 0 if not. It is the parent
        of operators on threads of autograd without an open op.
    """

    nodes: int = 0
    unlinked: int = 0
    compiled: int = 0
    failure: str | None = None
    in_progress: int = 0
    parent: int = 0

    def enter(self, op_id: int, *, is_nested: bool) -> int:
        """Count a pass that begins; return what to pass to `leave`."""
        outer = self.parent
        is_only = not self.in_progress or (is_nested and outer)
        self.in_progress += 1
        self._set_parent(op_id if is_only else 0)
        return outer

    def leave(self, outer: int) -> None:
        """Count the end of a pass."""
        self.in_progress -= 1
        self._set_parent(outer if self.in_progress else 0)

    def _set_parent(self, op_id: int) -> None:
        self.parent = op_id
        _native.operators_backward(op_id)


def recorded_backward(
    original: Callable[..., Any],
    log: SequenceLog,
    counts: BackwardCounts,
    is_off: Callable[[], bool],
    is_compiled: Callable[[], bool],
) -> Callable[..., Any]:
    """Wrap the function of torch that runs the autograd engine."""
    import torch

    # Tensors that no pass uses now; to make one per pass would be an operator in each profile. They
    # are not in a `threading.local`: a thread of autograd's pool deletes its Python state after
    # each hook, and with it such a tensor, whose hooks would then delete the state again.
    carriers = [torch.empty(0)]
    task = torch._C._current_graph_task_id  # noqa: SLF001 - there is no public name
    current_node = torch._C._current_autograd_node  # noqa: SLF001 - the same
    # A node that accumulates a gradient has no number.
    leaf = getattr(torch._C._functions, "AccumulateGrad", None)  # noqa: SLF001 - the same
    name = _native.intern("backward")
    kind = kind_id("autograd", "torch")

    def run_backward(t_outputs: Any, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401
        if is_off():
            return original(t_outputs, *args, **kwargs)
        op_id = _native.push(name, CALL, kind)
        modules = _RunningModules(op_id, current_node)
        outer = counts.enter(op_id, is_nested=task() >= 0)
        try:
            if is_compiled():
                counts.compiled += 1
            else:
                keeps_graph = len(args) < 2 or bool(args[1])  # as the engine's second option
                try:
                    carrier = carriers.pop()
                except IndexError:  # several threads begin passes at once
                    carrier = torch.empty(0)
                add_hooks = _add_removable_hooks if keeps_graph else _hooks_of_one_pass(carrier)
                modules.watch(t_outputs, leaf, log, counts, add_hooks)
                carriers.append(carrier)
            return original(t_outputs, *args, **kwargs)
        finally:
            counts.leave(outer)
            modules.end()
            _native.pop(op_id)

    return run_backward


class _RunningModules:
    """The module calls whose nodes run now, on each thread of one backward pass."""

    def __init__(self, op_id: int, current_node: Callable[[], Any]) -> None:
        self._op_id = op_id
        self._current_node = current_node
        self._remove_hooks: Callable[[], None] | None = None
        self._open: dict[int, list[Any]] = {}
        """As in `_native.switch_calls`."""

    def watch(
        self,
        outputs: Iterable[Any],
        leaf: type | None,
        log: SequenceLog,
        counts: BackwardCounts,
        add_hooks: _AddHooks,
    ) -> None:
        """Add a hook to the first node of each stretch of the graph."""
        try:
            stretches = log.stretches(_roots(outputs), leaf)
            counts.nodes += stretches.nodes
            counts.unlinked += stretches.unlinked
            calls = dict(stretches.first)
            hook = partial(_native.switch_calls, self._open, self._op_id, calls, self._current_node)
            self._remove_hooks = add_hooks(calls, hook)
        except Exception as error:  # noqa: BLE001 - the user's backward pass runs in any case
            if counts.failure is None:
                counts.failure = f"{type(error).__name__}: {error}"

    def end(self) -> None:
        """Remove the hooks and end the ops, also those of autograd's threads."""
        if self._remove_hooks is not None:
            self._remove_hooks()
        for opened in self._open.values():
            for op_id in reversed(opened[1::2]):
                _native.pop_of_any_thread(op_id)


def _add_removable_hooks(nodes: Iterable[Any], hook: Callable[[Any], None]) -> Callable[[], None]:
    """Add a hook before each node; return the function that removes it."""
    handles: list[Any] = []

    def remove() -> None:
        for handle in handles:
            handle.remove()

    try:
        handles.extend(node.register_prehook(hook) for node in nodes)
    except BaseException:
        remove()
        raise
    return remove


def _hooks_of_one_pass(carrier: Any) -> _AddHooks:  # noqa: ANN401 - a tensor
    """Return a cheaper function to add hooks, for a graph that the backward pass frees.

    It takes a dict of hooks, as tensors have; `carrier` is one. Emptying the dict removes them, but
    the nodes keep the dict, so that a graph that is used many times would collect dicts.
    """

    def add_hooks(nodes: Iterable[Any], hook: Callable[[Any], None]) -> Callable[[], None]:
        hooks = {0: hook}
        carrier._backward_hooks = hooks  # noqa: SLF001 - there is no public name
        try:
            for node in nodes:
                node._register_hook_dict(carrier)  # noqa: SLF001 - the same
        except BaseException:
            hooks.clear()
            raise
        return hooks.clear

    return add_hooks


def _roots(outputs: Iterable[Any]) -> list[Any]:
    """Return the nodes with which the backward pass of some outputs begins."""
    # An output is a tensor or an edge of a graph.
    roots = [output.grad_fn if hasattr(output, "grad_fn") else output.node for output in outputs]
    return [node for node in dict.fromkeys(roots) if node is not None]
