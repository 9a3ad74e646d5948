"""StackLines: the lines of the Python stacks of a profile, and which of them are the user's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.source_text import statement_starts
from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn
from epprof_nb.util.format import base_name

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

    Rows = npt.NDArray[np.signedinteger[Any]]


INLINE_LOOPS = {
    "<genexpr>": "generator expression",
    "<listcomp>": "list comprehension",
    "<setcomp>": "set comprehension",
    "<dictcomp>": "dict comprehension",
}
"""Functions that Python makes of loops within an expression, and what they are."""


def enclosing_function(function: str) -> str:
    """Return the function that a loop within an expression is written in; others as they are.

    Examples
    --------
    >>> enclosing_function("Model.fit.<locals>.<genexpr>"), enclosing_function("<listcomp>")
    ('Model.fit', '<module>')
    >>> enclosing_function("Model.fit")
    'Model.fit'
    """
    outer, _, name = function.rpartition(".")
    if name not in INLINE_LOOPS:
        return function
    return enclosing_function(outer.removesuffix(".<locals>")) if outer else "<module>"


def short_function(function: str) -> str:
    """Return the name of a function, or of the function of a loop, without the functions around.

    Examples
    --------
    >>> short_function("make.<locals>.Model.fit.<locals>.<genexpr>")
    'Model.fit'
    """
    return enclosing_function(function).rpartition(".<locals>.")[2]


class StackLines:
    """The place of each stack in the user's code.

    Parameters
    ----------
    index
        Index of the profile.

    Attributes
    ----------
    parent
        int64 array, shape ``(n,)``: the stack that called each one; `MISSING` for none.
    is_own
        bool array, shape ``(n,)``: whether the frame is of the user's code.
    file, function
        Names of the frames, one per stack.
    line
        int64 array, shape ``(n,)``: line of the frame; of a statement of several lines its first.
    own
        int64 array, shape ``(n + 1,)``: row of the innermost frame of the user's code; `MISSING`
        for none, and as last element, for what has no stack.
    caller
        int64 array, shape ``(n + 1,)``: row of the innermost frame of the profiled cell, else of
        the outermost one of the user's code, likewise.
    """

    def __init__(self, index: ProfileIndex) -> None:
        self._profile = index.profile
        stacks = index.profile.tables["stacks"]
        self.parent = stacks["parent_id"].astype(np.int64)
        self.file, self.function = stacks.names("file"), stacks.names("function")
        owners = stacks.names("owner")
        self.is_own = owners.equals("cell") | owners.equals("own")
        self.line = self._statement_lines(stacks["line"])
        own = nearest_ancestor(self.parent, self.is_own)
        self.own = np.append(own, MISSING)
        in_cell = self.is_own & self.file.equals(str(index.profile.info.get("cell")))
        of_cell = nearest_ancestor(self.parent, in_cell)
        self.caller = np.append(np.where(of_cell >= 0, of_cell, self._outermost()), MISSING)

    def __len__(self) -> int:
        return len(self.parent)

    def of_activities(self, attribution: Attribution = "launch") -> Rows:
        """Return the stack of each activity: of its launch, or of the capture of its node."""
        stack = self._profile.tables["activities"]["stack_id"]
        if attribution == "capture":
            captured = self._profile.tables["activities"]["capture_stack_id"]
            return np.where(captured >= 0, captured, stack)
        return stack

    def of_calls(self) -> Rows:
        """Return the stack of each API call."""
        return self._profile.tables["api_calls"]["stack_id"]

    def _outermost(self) -> IntArray:
        """Return the outermost frame of the user's code of each stack."""
        found: list[int] = []
        for row, (parent, is_own) in enumerate(
            zip(self.parent.tolist(), self.is_own.tolist(), strict=True)
        ):
            above = found[parent] if parent >= 0 else MISSING
            found.append(above if above >= 0 else row if is_own else MISSING)
        return np.array(found, np.int64)

    def _statement_lines(self, lines: IntArray) -> IntArray:
        """Return the lines; of statements with several lines, the first."""
        found = lines.copy()
        for code, name in enumerate(self.file.categories):
            text = self._profile.sources.get(name)
            rows = np.flatnonzero(self.file.codes == code)
            if text is None or not len(rows):
                continue
            starts = statement_starts(text)
            if starts:
                found[rows] = [starts.get(line, line) for line in lines[rows].tolist()]
        return found


def launching_lines(index: ProfileIndex) -> CategoryColumn:
    """Return the user's line of each stack, as ``train (In[3]:14)``; the last one is missing."""
    lines = index.cached(StackLines)
    rows = lines.own[:-1]
    rows = np.unique(rows[rows >= 0])
    label = np.full(len(lines) + 1, MISSING, np.int64)
    label[rows] = np.arange(len(rows))
    places = zip(
        lines.function.take(rows).to_list(),
        lines.file.take(rows).to_list(),
        lines.line[rows].tolist(),
        strict=True,
    )
    return CategoryColumn.of([frame_label(*place) for place in places] + [None]).take(
        label[lines.own]
    )


def frame_label(function: str | None, file: str | None, line: int) -> str:
    """Return the label of a frame.

    Examples
    --------
    >>> frame_label("train", "In[3]", 14), frame_label("f", "/home/ada/model.py", 2)
    ('train (In[3]:14)', 'f (model.py:2)')
    """
    return f"{function} ({base_name(file or '')}:{line})"
