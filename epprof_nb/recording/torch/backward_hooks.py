"""Hooks that open the ops of modules in backward passes where no function of CUDA is called.

A hook before the first node of each stretch of nodes that one module call created opens its op.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from epprof_nb import _native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from epprof_nb.recording.torch.backward_counts import BackwardCounts

    _AddHooks = Callable[[Iterable[Any], Callable[[Any], None]], Callable[[], None]]
    """Adds a hook before each node; returns the function that removes it."""


class BackwardHooks:
    """Hooks on the nodes of backward passes.

    Parameters
    ----------
    counts
        Receives the numbers of nodes and the first error.
    """

    def __init__(self, counts: BackwardCounts) -> None:
        import torch

        self._counts = counts
        # Tensors that no pass uses now. Creating one per pass would add an operator to each
        # profile. They are not in a `threading.local`: after each hook, a thread of autograd's pool
        # deletes its Python state and would delete the tensor too. The tensor's hooks would then
        # delete the state again.
        self._carriers = [torch.empty(0)]
        self._new_carrier = partial(torch.empty, 0)
        self._current_node = torch._C._current_autograd_node  # noqa: SLF001 - no public name
        # A node that accumulates a gradient has no number.
        self._leaf = getattr(torch._C._functions, "AccumulateGrad", None)  # noqa: SLF001

    def add(
        self, number: int, outputs: Iterable[Any], *, keeps_graph: bool
    ) -> Callable[[], None] | None:
        """Add a hook to the first node of each module call; return the function that removes them.

        Parameters
        ----------
        number
            Number of the pass, from `_native.pass_begin`.
        outputs
            Tensors or edges with which the pass begins.
        keeps_graph
            Whether another pass may use the graph.
        """
        try:
            carrier = self._carriers.pop()
        except IndexError:  # several threads began passes at once
            carrier = self._new_carrier()
        try:
            first, nodes, unlinked = _native.stretches(_roots(outputs), self._leaf)
            self._counts.nodes += nodes
            self._counts.unlinked += unlinked
            calls = dict(first)
            hook = partial(_native.switch_calls, number, calls, self._current_node)
            add = _add_removable_hooks if keeps_graph else _hooks_of_one_pass(carrier)
            return add(calls, hook)
        except Exception as error:  # noqa: BLE001 - the user's backward pass must run in any case
            if self._counts.failure is None:
                self._counts.failure = f"{type(error).__name__}: {error}"
            return None
        finally:
            self._carriers.append(carrier)


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

    It takes a dict of hooks of a tensor, the `carrier`. Emptying the dict removes the hooks. The
    nodes keep the dict, so a graph that is used many times would collect dicts.
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
    """Return the first nodes of the backward pass of some outputs."""
    # An output is a tensor or an edge of a graph.
    roots = [output.grad_fn if hasattr(output, "grad_fn") else output.node for output in outputs]
    return [node for node in dict.fromkeys(roots) if node is not None]
