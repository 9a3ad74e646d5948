"""Lines of code of kernels: of functions in Python, and of the instructions that XLA compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.attribution import attributed_op_rows
from epprof_nb.analysis.base.result_table import categorical
from epprof_nb.analysis.frameworks.training_phases import is_of_type
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.op_args import arguments

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.names import CategoryColumn


def kernel_sources(
    index: ProfileIndex,
    groups: npt.NDArray[np.int32],
    shown: IntArray,
    names: CategoryColumn,
    distinct: IntArray,
) -> CategoryColumn:
    """Return the file and line of groups of kernels, as ``model.py:12``; missing for several.

    Parameters
    ----------
    index
        Index of the profile.
    groups
        Group of each activity.
    shown
        The groups whose places to return.
    names, distinct
        Name of the first kernel, and number of names, of each group in `shown`.
    """
    known = index.profile.info.get("kernel_places") or {}
    found = [known.get(name) for name in names.to_list()]
    functions = [f"{place['file']}:{place['line']}" if place else None for place in found]
    instructions = _of_instructions(index, groups, shown)
    return categorical(
        [
            (function if count == 1 else None) or instruction
            for function, instruction, count in zip(
                functions, instructions, distinct.tolist(), strict=True
            )
        ]
    )


def _of_instructions(
    index: ProfileIndex, groups: npt.NDArray[np.int32], shown: IntArray
) -> list[str | None]:
    """Return the common place of the instructions of each group's kernels; None if they differ."""
    ops = index.profile.tables["ops"]
    instructions = np.flatnonzero(is_of_type(index, "hlo"))
    if not len(instructions) or not len(shown):
        return [None] * len(shown)
    file, line = arguments(ops.names("args"), instructions, ["file", "line"])
    codes, first = group_codes(file.codes.astype(np.int64), line.codes.astype(np.int64))
    of_place = [
        f"{file.distinct[file.codes[row]]}:{line.distinct[line.codes[row]]}"
        if min(file.codes[row], line.codes[row]) >= 0
        else None
        for row in first.tolist()
    ]
    place_of_op = np.full(len(ops) + 1, MISSING, np.int64)
    place_of_op[instructions] = codes
    # The instruction that created the node of a command buffer, not the one that launches it.
    rows = attributed_op_rows(index.profile.tables["activities"], index.tree, "capture")
    place = place_of_op[rows]
    n = int(groups.max()) + 1
    least, greatest = np.full(n, np.iinfo(np.int64).max), np.full(n, np.int64(MISSING))
    np.minimum.at(least, groups, place)
    np.maximum.at(greatest, groups, place)
    return [
        of_place[low] if low == high and low >= 0 else None
        for low, high in zip(least[shown].tolist(), greatest[shown].tolist(), strict=True)
    ]
