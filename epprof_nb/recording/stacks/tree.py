"""A calling-context tree that grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.types import MISSING
from epprof_nb.data.python_stacks import PythonStacks

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

Code = tuple[str, str, int]
"""File, qualified name and first line of a function."""


class StackTree:
    """Stacks, each stored once, in the order in which they were added."""

    def __init__(self) -> None:
        self._stacks: dict[tuple[int, int, int], int] = {}
        self._codes: dict[Code, int] = {}

    def add(self, caller: int, code: Code, line: int) -> int:
        """Return the row of the stack in which `code` runs a line, called by the stack `caller`."""
        row = self._codes.setdefault(code, len(self._codes))
        return self._stacks.setdefault((caller, row, line), len(self._stacks))

    def graft(self, stacks: PythonStacks, rows: Iterable[int]) -> dict[int, int]:
        """Add some rows of other stacks, with their callers; return where each of them is here."""
        found = {MISSING: MISSING}
        for row in sorted(set(rows) - {MISSING}):
            missing, caller = [], row
            while caller not in found:
                missing.append(caller)
                caller = int(stacks.parent_id[caller])
            caller = found[caller]
            for stack in reversed(missing):
                code = int(stacks.code_id[stack])
                facts = stacks.file[code], stacks.function[code], int(stacks.first_line[code])
                caller = found[stack] = self.add(caller, facts, int(stacks.line[stack]))
        return found

    def stacks(self, *, truncated: int = 0, dropped: int = 0) -> PythonStacks:
        """Return the tree, with counts of missing stacks."""
        columns: npt.NDArray[np.int32] = np.array(list(self._stacks), np.int32).reshape(-1, 3)
        parent, code, line = columns.T
        return PythonStacks(
            parent,
            code,
            line,
            tuple(file for file, _, _ in self._codes),
            tuple(function for _, function, _ in self._codes),
            np.array([first for _, _, first in self._codes], np.int32),
            truncated=truncated,
            dropped=dropped,
        )
