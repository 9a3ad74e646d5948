"""Findings on code that ``torch.compile`` compiles: again, or for the first time."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.findings.finding import Finding, capitalised, op_id_of, place_name
from epprof_nb.analysis.frameworks.training_phases import is_of_type
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.op_args import arguments
from epprof_nb.util.format import duration, plural, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.op_args import Argument

_REASON_CHARACTERS = 160
_SHAPE_REMEDY = (
    "Call it with inputs of the same lengths (pad them to a few sizes), or compile for any length: "
    "`torch.compile(..., dynamic=True)`, or `torch._dynamo.mark_dynamic(tensor, dim)` for one "
    "dimension."
)
_REMEDY = (
    "Keep the values that the reason names the same in all calls. `TORCH_LOGS=recompiles` logs "
    "each recompilation. If lengths of inputs change, use `torch.compile(..., dynamic=True)`."
)
_FIRST_REMEDY = (
    "Warm up before the profile: call the compiled code once with inputs of the same shapes."
)
_OF_SHAPES = ("size mismatch", ".size()", ".shape", "stride mismatch")
"""Parts of the reasons of recompilations for inputs of other shapes."""


def torch_compilations(index: ProfileIndex) -> Iterator[Finding]:
    """Yield findings on recompilations by ``torch.compile``, and on its first compilations.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> list(torch_compilations(ProfileIndex(synthetic_profile(activities=100))))
    []
    """
    ops, tree = index.profile.tables["ops"], index.tree
    is_compile = is_of_type(index, "compile") & ops.names("source").equals("torch")
    # The time of a compilation inside of another one is part of it.
    above = np.append(tree.nearest_ancestor(is_compile), MISSING)[tree.parent]
    rows = np.flatnonzero(is_compile & has_host_time(ops) & (above == MISSING))
    if not len(rows):
        return
    rows = rows[np.argsort(ops["start_ns"][rows], kind="stable")]
    number, reason = arguments(ops.names("args"), rows, ["compile_id", "recompile_reason"])
    again = _are_again(number) | (reason.codes != MISSING)
    caller = tree.nearest_ancestor(~is_compile)[rows]
    # Compilations in calls of one place form one finding, whatever the module.
    groups, first = group_codes(index.cached(Places).of_op[caller])
    for group in range(len(first)):
        of_group = groups == group
        for chosen, is_again in ((of_group & again, True), (of_group & ~again, False)):
            at = np.flatnonzero(chosen)
            if len(at):
                longest = at[int(ops["duration_ns"][rows[at]].argmax())]
                known = reason.codes[longest] != MISSING
                why = str(reason.distinct[reason.codes[longest]]) if known else ""
                place = place_name(index, int(caller[at[0]])) or "the code"
                yield _finding(index, rows[at], capitalised(place), why, is_again=is_again)


def _are_again(number: Argument) -> BoolArray:
    """Return a mask of the compilations of code that was compiled before.

    The id that torch gives a compilation ends with how often the code was compiled before.
    """
    counts = [str(text).rpartition("/")[2] for text in number.distinct]
    of_code = np.array([*(text.isdigit() and int(text) > 0 for text in counts), False])
    mask: BoolArray = of_code[number.codes]
    return mask


def _finding(
    index: ProfileIndex, rows: IntArray, place: str, reason: str, *, is_again: bool
) -> Finding:
    ops = index.profile.tables["ops"]
    total = int(ops["duration_ns"][rows].sum())
    longest = int(rows[int(ops["duration_ns"][rows].argmax())])
    if is_again:
        text = f"{place} makes torch.compile compile code again: {plural(len(rows), 'compilation')}"
        remedy = _SHAPE_REMEDY if any(part in reason for part in _OF_SHAPES) else _REMEDY
    else:
        text = f"{place} makes torch.compile compile code for the first time"
        remedy = _FIRST_REMEDY
    of_longest = " of the longest one" if len(rows) > 1 else ""
    shown = shorten(reason.replace("`", "'"), _REASON_CHARACTERS)
    why = f" The reason{of_longest}: {shown}." if reason else ""
    return Finding(
        f"{text}, {duration(total)}.{why}",
        total,
        int(ops["start_ns"][longest]),
        int(ops["end_ns"][longest]),
        kind="compilation",
        remedy=remedy,
        op_id=op_id_of(index, longest),
        table="ops",
        rows=partial(np.copy, np.sort(rows)),
    )
