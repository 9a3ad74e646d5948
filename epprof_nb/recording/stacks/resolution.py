"""Resolution of the native core's log of stacks to the tree of a profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.types import MISSING
from epprof_nb.recording.native_columns import numbers
from epprof_nb.recording.stacks.tree import StackTree

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from epprof_nb.data.python_stacks import PythonStacks


@dataclass(frozen=True, slots=True)
class ResolvedStacks:
    """The stacks of a profile, and where those that the launch log names are in it."""

    tree: StackTree
    row: npt.NDArray[np.int32]
    """Row in the tree of each id of the native core; `MISSING` for ids that were not asked for,
    and as last element, so that id -1 finds it."""
    truncated: int
    dropped: int

    def rows(self, ids: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """Return the row of each id of the native core, `MISSING` for none."""
        found: npt.NDArray[np.int32] = self.row[ids]
        return found

    @property
    def stacks(self) -> PythonStacks:
        """The tree as it is now."""
        return self.tree.stacks(truncated=self.truncated, dropped=self.dropped)


def resolve(
    drained: Sequence[dict[str, Any]], used: Iterable[npt.NDArray[Any]] = ()
) -> ResolvedStacks:
    """Build the tree of the stacks that are used, and of their callers.

    Stacks that differ in their instructions only, or that several threads saw, become one. Frames
    without a line are left out: the interpreter makes them.

    Parameters
    ----------
    drained
        What `_native.drain_stacks` returned since the session began.
    used
        Arrays of ids of stacks, -1 for none.
    """

    def get(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        parts = [numbers(raw, name, dtype) for raw in drained]
        return np.concatenate(parts) if parts else np.empty(0, dtype)

    ids = get("stack_id", np.int32)
    size = int(ids.max(initial=MISSING)) + 1
    columns = {}
    for name in ("parent_id", "stack_code_id", "line"):
        columns[name] = np.full(size, MISSING, np.int32)
        columns[name][ids] = get(name, np.int32)
    needed = _with_callers(columns["parent_id"], used, size)
    needed_codes = np.unique(columns["stack_code_id"][needed])
    codes = _codes(drained, needed_codes)
    row = np.full(size + 1, MISSING, np.int32)
    tree = StackTree()
    for i, parent, code, line in zip(
        needed.tolist(),
        *(columns[name][needed].tolist() for name in ("parent_id", "stack_code_id", "line")),
        strict=True,
    ):
        caller = int(row[parent])
        row[i] = caller if line < 0 else tree.add(caller, codes[code], line)
    last = drained[-1] if drained else {"truncated": 0, "dropped": 0}
    return ResolvedStacks(tree, row, last["truncated"], last["dropped"])


def _with_callers(
    parent: npt.NDArray[np.int32], used: Iterable[npt.NDArray[Any]], size: int
) -> npt.NDArray[np.intp]:
    """Return the ids that are used, and the ids of their callers, ascending."""
    is_needed = np.zeros(size + 1, np.bool_)  # id -1 finds the last element
    for ids in used:
        is_needed[ids] = True
    found = np.flatnonzero(is_needed[:-1])
    while len(found):
        callers = np.unique(parent[found])
        found = callers[~is_needed[callers] & (callers != MISSING)]
        is_needed[found] = True
    return np.flatnonzero(is_needed[:-1])


def _codes(
    drained: Sequence[dict[str, Any]], needed: npt.NDArray[np.int32]
) -> dict[int, tuple[str, str, int]]:
    """Return the file, the function and its first line of some code objects, by their ids."""
    found: dict[int, tuple[str, str, int]] = {}
    for raw in drained:
        ids = numbers(raw, "code_id", np.int32)
        rows = np.flatnonzero(np.isin(ids, needed))
        files, functions = _texts(raw, "file", rows), _texts(raw, "function", rows)
        first_lines = numbers(raw, "first_line", np.int32)[rows].tolist()
        facts = zip(files, functions, first_lines, strict=True)
        found |= zip(ids[rows].tolist(), facts, strict=True)
    return found


def _texts(raw: dict[str, Any], name: str, rows: npt.NDArray[np.intp]) -> list[str]:
    """Return the values of a text in some rows."""
    sizes = numbers(raw, f"{name}_bytes", np.uint32).astype(np.int64)
    ends = np.cumsum(sizes)
    data = raw[f"{name}s"]
    return [
        _shown(str(data[end - size : end], "utf-8", "surrogatepass"))
        for end, size in zip(ends[rows].tolist(), sizes[rows].tolist(), strict=True)
    ]


def _shown(text: str) -> str:
    """Escape lone surrogates, of file names that are not valid text."""
    return text.encode("utf-8", "backslashreplace").decode()
