"""Python stacks: the calling-context tree in which launches, waits and graph nodes occurred.

A stack is a node of the tree, known by its row: the frame that launched, with the row of the
stack that called it. Activities and API calls have two columns for it. `stack_id` is the row, or
-1 (`MISSING`) for none; `stack_source` says how the stack was found, as an index of `SOURCES`, or
-1 where there is no stack.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

SOURCES = ("exact", "near", "op", "replay")
"""How a stack was found: `stack_source` is an index of this tuple.

exact
    Read on the launching thread at the launch; of a backward kernel, the stack in which the
    forward pass created the autograd node that launched it.
near
    Of a backward kernel between two such nodes: the stack of the closest one before it.
op
    The stack at which the op that the launch belongs to was opened, or one around it: the launching
    thread runs no Python, or another profiler kept the launch from being seen.
replay
    Of a node of a graph: the stack that launched the graph. `capture_stack_id` has the stack that
    captured the node.
"""

EXACT, NEAR, OP, REPLAY = range(len(SOURCES))


def _empty() -> npt.NDArray[np.int32]:
    return np.empty(0, np.int32)


class StackFrame(NamedTuple):
    """A frame of a stack: a function and the line that it executed."""

    file: str
    function: str
    line: int
    first_line: int


@dataclass(frozen=True, slots=True, eq=False)
class PythonStacks:
    """A calling-context tree of Python frames, and the functions of its frames.

    Attributes
    ----------
    parent_id : ndarray, int32, one element per stack
        Row of the calling stack, which precedes this one; -1 for an outermost frame.
    code_id : ndarray, int32, one element per stack
        Row of the frame's function in `file`, `function` and `first_line`.
    line : ndarray, int32, one element per stack
        Line, from 1, that called the next frame or, of the innermost frame, that launched.
    file : tuple of str
        File name of each code object, as in ``co_filename``.
    function : tuple of str
        Qualified name of each code object, as in ``co_qualname``.
    first_line : ndarray, int32, one element per code object
        First line of the function, as in ``co_firstlineno``.
    truncated : int
        Stacks that were deeper than the limit: their outermost frames are missing.
    dropped : int
        Launches without a stack because the memory for stacks was used up.

    Raises
    ------
    ValueError
        If arrays differ in length, or an id is out of range: a parent has to precede its stacks.

    Examples
    --------
    >>> import numpy as np
    >>> stacks = PythonStacks(
    ...     parent_id=np.array([-1, 0], np.int32),
    ...     code_id=np.array([0, 1], np.int32),
    ...     line=np.array([9, 3], np.int32),
    ...     file=("train.py", "model.py"),
    ...     function=("train", "Model.forward"),
    ...     first_line=np.array([7, 1], np.int32),
    ... )
    >>> [f"{frame.function}:{frame.line}" for frame in stacks.frames(1)]
    ['Model.forward:3', 'train:9']
    """

    parent_id: npt.NDArray[np.int32] = field(default_factory=_empty)
    code_id: npt.NDArray[np.int32] = field(default_factory=_empty)
    line: npt.NDArray[np.int32] = field(default_factory=_empty)
    file: tuple[str, ...] = ()
    function: tuple[str, ...] = ()
    first_line: npt.NDArray[np.int32] = field(default_factory=_empty)
    truncated: int = 0
    dropped: int = 0

    def __post_init__(self) -> None:
        if not len(self.parent_id) == len(self.code_id) == len(self.line):
            raise ValueError("the columns of stacks differ in length")
        if not len(self.file) == len(self.function) == len(self.first_line):
            raise ValueError("the columns of code objects differ in length")
        rows = np.arange(len(self.parent_id))
        if (self.parent_id < MISSING).any() or (self.parent_id >= rows).any():
            raise ValueError("the parent of a stack has to precede it")
        if ((self.code_id < 0) | (self.code_id >= len(self.file))).any():
            raise ValueError("a stack has a frame of an unknown code object")

    def __len__(self) -> int:
        """Number of stacks."""
        return len(self.parent_id)

    def frames(self, stack_id: int) -> list[StackFrame]:
        """Return the frames of a stack, the innermost first; none for -1."""
        frames = []
        while stack_id != MISSING:
            code = int(self.code_id[stack_id])
            frames.append(
                StackFrame(
                    self.file[code],
                    self.function[code],
                    int(self.line[stack_id]),
                    int(self.first_line[code]),
                )
            )
            stack_id = int(self.parent_id[stack_id])
        return frames
