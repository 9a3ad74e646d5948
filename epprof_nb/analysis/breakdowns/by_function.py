"""by_function: host time of each function of the user's code, by samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.result_table import ResultTable, categorical, objects, optional
from epprof_nb.analysis.base.sampled_time import sampled_time
from epprof_nb.analysis.base.source_text import line_text, split_lines
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

NO_FUNCTION = "(no function)"
"""Name of the row of samples outside of the user's code."""


def function_table(
    index: ProfileIndex, *, lines: bool = False, library: bool = False
) -> ResultTable:
    """Return the columns of `Profile.by_function`."""
    stacks = index.cached(StackLines)
    shown = np.flatnonzero(stacks.is_own | library)
    of_line, first = group_codes(
        stacks.file.codes[shown], stacks.function.codes[shown], stacks.line[shown]
    )
    frame = shown[first]
    by_line = sampled_time(index, _of_stacks(len(stacks), shown, of_line), len(frame))
    # The line with most samples shows a function.
    hottest = np.lexsort((-by_line.inclusive[:-1], -by_line.own[:-1]))
    time = by_line
    if not lines:
        group, example = group_codes(
            stacks.file.codes[frame[hottest]], stacks.function.codes[frame[hottest]]
        )
        of_function = np.empty(len(frame), np.int64)
        of_function[hottest] = group
        frame = frame[hottest[example]]
        of_frame = _of_stacks(len(stacks), shown, of_function[of_line])
        time = sampled_time(index, of_frame, len(frame))
    order = np.lexsort((-time.inclusive[:-1], -time.own[:-1]))
    order = order[time.inclusive[order] > 0]
    none = time.inclusive[-1:] > 0
    rows, order = frame[order], np.append(order, np.flatnonzero(none) + len(frame))
    files, numbers = stacks.file.take(rows).to_list(), stacks.line[rows].tolist()
    texts = {name: split_lines(text) for name, text in index.profile.sources.items()}
    sources = [line_text(texts.get(f or "", []), n) for f, n in zip(files, numbers, strict=True)]
    last = [None] * int(none.sum())
    return ResultTable(
        {
            "function": categorical(
                [*stacks.function.take(rows).to_list(), *(NO_FUNCTION for _ in last)]
            ),
            "file": categorical([*files, *last]),
            "line": optional([*numbers, *(MISSING for _ in last)]),
            "source": objects([*sources, *("" for _ in last)]),
            "sampled_ns": time.inclusive[order],
            "self_sampled_ns": time.own[order],
            "self_share": time.own[order] / max(int(time.own.sum()), 1),
            "samples": time.samples[order],
        }
    )


def _of_stacks(count: int, shown: IntArray, group: IntArray) -> IntArray:
    """Return the group of each stack; `MISSING` for frames that are not shown."""
    found = np.full(count, MISSING, np.int64)
    found[shown] = group
    return found
