"""Log of module calls, to find the one that created an autograd node.

PyTorch numbers the nodes that a thread creates. The numbers at which module calls begin and end
therefore tell, for each number, the innermost call that was open when the node was created.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from epprof_nb import _native

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.frameworks.module_paths import ModuleOp

Call = tuple["Call | None", "ModuleOp"]
"""A call of a module: the call that contains it, and the ops of the module."""

_MAX_CHANGES = 400_000
"""Changes kept per thread, of some thousand training steps. Older nodes cannot be linked."""


class ThreadCalls:
    """The module calls of one thread.

    Attributes
    ----------
    first
        Number of the first node that can be linked.
    numbers, calls
        From the node with number ``numbers[i]`` on, the innermost call is ``calls[i]``; None
        outside of all modules. The numbers ascend.
    current
        The call that is open now.
    is_worker
        Whether all calls were made inside backward passes, as by the threads of autograd.
    """

    __slots__ = ("calls", "current", "first", "is_worker", "numbers")

    def __init__(self, first: int) -> None:
        self.first = first
        self.numbers: list[int] = []
        self.calls: list[Call | None] = []
        self.current: Call | None = None
        self.is_worker = True

    def change(self, number: int, call: Call | None) -> None:
        """Make `call` the innermost one from the node with this number on."""
        self.current = call
        numbers = self.numbers
        if numbers and numbers[-1] == number:  # no node was created since the last change
            self.calls[-1] = call
            return
        if len(numbers) >= _MAX_CHANGES:
            del numbers[: _MAX_CHANGES // 2]
            del self.calls[: _MAX_CHANGES // 2]
            self.first = numbers[0]
        numbers.append(number)
        self.calls.append(call)


class Stretches(NamedTuple):
    """The nodes of a graph, in stretches of those that one call created.

    Attributes
    ----------
    first
        The first node of each stretch, in the order in which they run, and its call; None for nodes
        outside of modules or of an unknown call.
    nodes, unlinked
        Nodes with a number, and those of them of an unknown call.
    """

    first: list[tuple[Any, Call | None]]
    nodes: int
    unlinked: int


class _Local(threading.local):
    calls: ThreadCalls


class SequenceLog:
    """The module calls of all threads in a session.

    Parameters
    ----------
    next_number
        Function that returns the number of the next node of the calling thread.

    Attributes
    ----------
    local
        ``local.calls`` are the `ThreadCalls` of the calling thread.
    """

    def __init__(self, next_number: Callable[[], int]) -> None:
        self.threads: list[ThreadCalls] = []
        threads = self.threads

        class Local(_Local):
            def __init__(self) -> None:
                self.calls = ThreadCalls(next_number())
                threads.append(self.calls)

        self.local = Local()

    def stretches(self, roots: list[Any], leaf: type | None) -> Stretches:
        """Find the calls that created the nodes of a graph, whose backward pass this thread starts.

        The call is unknown if the node is older than the session, or if other threads called
        modules under the same numbers.

        Parameters
        ----------
        roots
            The nodes that run first.
        leaf
            Type of the nodes that accumulate gradients, which have no number.
        """
        own = self.local.calls
        others = [
            (other.numbers[0], other.numbers[-1]) for other in self.threads
            if other is not own and other.numbers and not other.is_worker
            and (not own.is_worker or not own.numbers)
        ]  # fmt: skip
        return Stretches(*_native.stretches(roots, leaf, own.numbers, own.calls, own.first, others))
