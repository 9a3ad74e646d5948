"""The table of the Python stacks of a profile, and the references of other tables to its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING, STACKS
from epprof_nb.data.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from epprof_nb.arrays.types import BoolArray
    from epprof_nb.data.python_stacks import PythonStacks

_REFERENCES = {
    "activities": ("stack_id", "capture_stack_id"),
    "api_calls": ("stack_id",),
    "host_samples": ("stack_id",),
}


def stack_table(
    stacks: PythonStacks, files: Sequence[str], owners: Sequence[str], is_kept: BoolArray
) -> tuple[Table, npt.NDArray[np.int32]]:
    """Return the table of the stacks, with the kept frames only.

    Parameters
    ----------
    stacks
        The stacks as they were recorded.
    files
        The name to show for the file of each code object, such as ``In[3]``.
    owners
        Whose code each code object is: "cell", "own" (another file of the user) or "library" if its
        frames are kept.
    is_kept
        bool array, one value per stack: whether its innermost frame is kept.

    Returns
    -------
    table
        A table of schema `epprof_nb.data.schema.STACKS`.
    row
        int32 array, one value per stack of `stacks` and a last one: row of its innermost frame that
        is in the table, `MISSING` for none.

    Examples
    --------
    >>> from epprof_nb.data.python_stacks import PythonStacks
    >>> stacks = PythonStacks(
    ...     np.array([-1, 0, 1], np.int32), np.arange(3, dtype=np.int32), np.array([9, 4, 2]),
    ...     ("runpy.py", "a.py", "b.py"), ("run", "main", "f"), np.array([1, 1, 1]),
    ... )
    >>> is_kept = np.array([False, True, True])
    >>> table, row = stack_table(stacks, stacks.file, ("", "own", "library"), is_kept)
    >>> table["parent_id"].tolist(), row.tolist()
    ([-1, 0], [-1, 0, 1, -1])
    """
    kept = np.flatnonzero(is_kept)
    number = np.full(len(stacks) + 1, MISSING, np.int32)
    number[kept] = np.arange(len(kept))
    row = number[np.append(nearest_ancestor(stacks.parent_id.astype(np.int64), is_kept), MISSING)]
    code = stacks.code_id[kept]

    def of_codes(texts: Sequence[str]) -> CategoryColumn:
        return CategoryColumn.of(texts).take(code)

    columns: dict[str, npt.NDArray[Any] | CategoryColumn] = {
        "stack_id": np.arange(len(kept)),
        "parent_id": row[stacks.parent_id[kept]],
        "file": of_codes(files),
        "function": of_codes(stacks.function),
        "line": stacks.line[kept],
        "first_line": stacks.first_line[code],
        "owner": of_codes(owners),
    }
    return Table(STACKS, columns), row


def with_stack_rows(tables: Mapping[str, Table], row: npt.NDArray[np.int32]) -> dict[str, Table]:
    """Return the tables with each reference to a stack replaced by ``row`` of it.

    Parameters
    ----------
    tables
        Tables by name.
    row
        int32 array: the new row of each stack, and `MISSING` as last element.
    """
    changed = dict(tables)
    for name, columns in _REFERENCES.items():
        table = changed[name]
        found: dict[str, Any] = {
            column: row[table[column]] for column in columns if not table.is_absent(column)
        }
        if "stack_source" in table.schema.names and "stack_id" in found:
            sources = table.names("stack_source")
            codes = np.where(found["stack_id"] >= 0, sources.codes, np.int32(MISSING))
            found["stack_source"] = CategoryColumn(codes, sources.categories)
        if found:
            changed[name] = table.replace(**found)
    return changed


def check_stacks(tables: Mapping[str, Table]) -> None:
    """Check the stacks of a profile, which may be from an untrusted file.

    Raises
    ------
    ValueError
        If a row has another number than its own, a caller does not precede its stack, or another
        table refers to a stack that does not exist.
    """
    stacks = tables.get("stacks")
    size = 0 if stacks is None else len(stacks)
    if stacks is not None:
        rows, parent = np.arange(size), stacks["parent_id"]
        if not np.array_equal(stacks["stack_id"], rows):
            raise ValueError("the numbers of its stacks are not their rows")
        if ((parent < MISSING) | (parent >= rows)).any():
            raise ValueError("the caller of a stack does not precede it")
    for name, columns in _REFERENCES.items():
        for column in columns:
            if name in tables and not tables[name].is_absent(column):
                ids = tables[name][column]
                if ids.min(initial=MISSING) < MISSING or ids.max(initial=MISSING) >= size:
                    raise ValueError(f"{name}.{column} refers to a stack that does not exist")
