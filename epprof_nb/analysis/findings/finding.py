"""Finding: one sentence on what to change, with its remedy, its gain and the rows that show it.

Each rule has functions that return findings; `epprof_nb.analysis.findings.ranking` ranks them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar
from weakref import ref

import numpy as np

from epprof_nb.analysis.added_time.added_time import LEAST_STATED_SHARE
from epprof_nb.analysis.base.source_text import source_line
from epprof_nb.analysis.base.stack_lines import StackLines, short_function
from epprof_nb.analysis.base.tasks_of_ops import task_rows
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import base_name, duration, percent, shorten

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData


_T = TypeVar("_T")
_P = ParamSpec("_P")
EvidenceTable = Literal["activities", "ops", "api_calls", "memory_blocks", "memory_segments"]

LATER_STEPS = "record later steps only (`epprof run --steps A:B`; `epprof_nb.step()` begins a step)"
"""How a script leaves work out of its profile; a cell uses ``--warmup``."""

MIN_GAIN_SHARE = 0.02
"""Minimum gain of a finding to be shown, as a share of the wall time."""

_CODE_CHARACTERS = 56


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence and its evidence.

    Attributes
    ----------
    text
        The sentence; source text is between backticks.
    gain_ns
        Estimate of the time saved, nanoseconds.
    start_ns, end_ns
        The time range that shows it.
    kind
        Cause, such as ``idle``; empty for none.
    remedy
        One sentence on what to change.
    gain_low_ns, gain_high_ns
        Bounds of the gain, nanoseconds; None for 0 and `gain_ns`.
    op_id
        The op to change; if there are several, the one that contributes most. `MISSING` for none.
    stack_id
        The Python stack whose innermost line of the user's code is to change, likewise.
    at
        File and line to change, if the op and the stack have other ones; None otherwise.
    other_remedy
        Sentences on further remedies for the same time, each with its gain; empty for none.
    table
        Table of the evidence.
    is_unprofiled
        Whether the text and the gain leave out what profiling added.
    is_wait
        Whether the time is a wait for a thread, a lock, a timer or the like, which takes as long on
        a machine without other processes.
    rows
        Function that returns the row numbers of the evidence, int64, ascending; None for all rows
        that overlap the time range.
    spans
        Function that returns starts and ends of the time that the finding is about, nanoseconds,
        int64; None if no other finding can be about the same time.
    """

    text: str
    gain_ns: int
    start_ns: int
    end_ns: int
    kind: str = ""
    remedy: str = ""
    gain_low_ns: int | None = None
    gain_high_ns: int | None = None
    op_id: int = MISSING
    stack_id: int = MISSING
    at: tuple[str, int] | None = None
    other_remedy: str = ""
    table: EvidenceTable = "activities"
    is_unprofiled: bool = False
    is_wait: bool = False
    rows: Callable[[], IntArray] | None = field(default=None, compare=False, repr=False)
    spans: Callable[[], tuple[IntArray, IntArray]] | None = field(
        default=None, compare=False, repr=False
    )

    @property
    def low_ns(self) -> int:
        """Lower bound of the gain, at least 0 and at most `gain_ns`."""
        return min(max(self.gain_low_ns or 0, 0), self.gain_ns)

    @property
    def high_ns(self) -> int:
        """Upper bound of the gain, at least `gain_ns`."""
        return max(self.gain_ns if self.gain_high_ns is None else self.gain_high_ns, self.gain_ns)

    @property
    def advice(self) -> str:
        """The remedy and the gain as one sentence; empty without a remedy."""
        if not self.remedy:
            return ""
        gain = gain_text(self.gain_ns, self.low_ns, self.high_ns)
        remedy = f"{self.remedy.removesuffix('.')} ({gain})." if gain else self.remedy
        return _joined(remedy, self.other_remedy)

    @property
    def remedies(self) -> str:
        """The remedy, and further ones for the same time."""
        return _joined(self.remedy, self.other_remedy)

    def evidence_rows(self, profile: ProfileData) -> IntArray:
        """Return the row numbers of the evidence in `table`, int64, ascending."""
        if self.rows is not None:
            return self.rows()
        table = profile.tables[self.table]
        return np.flatnonzero((table["start_ns"] < self.end_ns) & (table["end_ns"] > self.start_ns))


def computed_later(
    index: ProfileIndex,
    compute: Callable[Concatenate[ProfileIndex, _P], _T],
    *args: _P.args,
    **kwargs: _P.kwargs,
) -> Callable[[], _T]:
    """Return a function that computes ``compute(index, ...)`` as long as the index exists.

    The index keeps its findings: with a reference from these to it, a cycle, only the garbage
    collector would free the memory of both.
    """
    reference = ref(index)

    def computed() -> _T:
        found = reference()
        if found is None:
            raise ReferenceError("The profile of this finding is gone: keep the profile.")
        return compute(found, *args, **kwargs)

    return computed


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


def gain_text(gain_ns: int, low_ns: int, high_ns: int) -> str:
    """Return a gain with its bounds; empty if the gain is 0, which stands for an unknown one.

    Examples
    --------
    >>> gain_text(12_000_000, 8_000_000, 15_000_000)
    'saves about 12.0 ms, 8.00 ms to 15.0 ms'
    >>> gain_text(12_000_000, 0, 12_000_000)
    'saves at most 12.0 ms'
    >>> gain_text(0, 0, 0)
    ''
    """
    if not gain_ns:
        return ""
    if not low_ns and high_ns == gain_ns:
        return f"saves at most {duration(gain_ns)}"
    low, gain, high = map(duration, (low_ns, gain_ns, high_ns))
    return f"saves about {gain}" + (f", {low} to {high}" if low != high else "")


def code(text: str) -> str:
    """Return source text between backticks, shortened."""
    # A backtick in the text would end the code span.
    return f"`{shorten(text.replace('`', chr(0x2BC)), _CODE_CHARACTERS)}`"


def is_cell(info: dict[str, Any]) -> bool:
    """Return whether a profile is of a notebook cell and not of a script.

    Examples
    --------
    >>> is_cell({"cell": "In[3]"})
    True
    >>> is_cell({"cell": "train.py", "script": "train.py"}), is_cell({})
    (False, False)
    """
    return bool(info.get("cell")) and not info.get("script")


def line_name(profile: ProfileData, cell: str | None, line: int) -> str:
    """Return the name of a line with its source, as ``line 3 (`x = f()`)``.

    A line of another cell or file is named with it, as ``line 3 of In[1] (`x = f()`)``.
    """
    text = source_line(profile, cell, line)
    return _line_of(profile, cell, line) + (f" ({code(text)})" if text else "")


def unread_line_name(profile: ProfileData, cell: str | None, line: int, name: str | None) -> str:
    """Return the name of a line whose source is not known, from its statement's."""
    # Without its source, a statement is named after its line.
    text = f" ({code(name)})" if name and name != f"line {line}" else ""
    return _line_of(profile, cell, line) + text


def _line_of(profile: ProfileData, cell: str | None, line: int) -> str:
    own = profile.info.get("cell")
    return f"line {line}" + (f" of {base_name(cell)}" if own and cell and cell != own else "")


def place_name(index: ProfileIndex, op: int) -> str:
    """Return the name of the statement that contains the op at row `op`, or of the op itself.

    In a task of Dask, it is the name of the task, because a statement submitted it. Empty if there
    is none.
    """
    if op < 0:
        return ""
    ops = index.profile.tables["ops"]
    task = int(index.cached(task_rows)[op])
    if task >= 0:
        (name,) = ops.names("name").take(np.array([task])).to_list()
        return f"task {code(name or '')}"
    statement = int(index.statement[op])
    if statement >= 0:
        line = int(ops["line"][statement])
        (cell,) = ops.names("cell").take(np.array([statement])).to_list()
        if not source_line(index.profile, cell, line):
            (name,) = ops.names("name").take(np.array([statement])).to_list()
            return unread_line_name(index.profile, cell, line, name)
        return line_name(index.profile, cell, line)
    (name,) = ops.names("name").take(np.array([op])).to_list()
    return code(name) if name else ""


def stack_of(index: ProfileIndex, table: Literal["activities", "api_calls"], row: int) -> int:
    """Return the stack in which an activity was launched, or an API call was made.

    `MISSING` for none, and for a stack without code of the user.
    """
    lines = index.cached(StackLines)
    stacks = lines.of_calls() if table == "api_calls" else lines.of_activities()
    stack = int(stacks[row]) if row >= 0 else MISSING
    return stack if lines.own[stack] >= 0 else MISSING


def launcher_name(index: ProfileIndex, stack: int, op: int) -> str:
    """Return the name of the user's line in a stack; without one, of the place of an op.

    Lines of the profiled cell are named as statements are, as ``line 3 (`x = f()`)``; others with
    their function and file, as ``line 14 of `train` (In[3]: `x = f()`)``.
    """
    lines = index.cached(StackLines)
    row = int(lines.own[stack])
    if row < 0:
        return place_name(index, op)
    names = (lines.file, lines.function)
    file, function = (names_.take(slice(row, row + 1)).to_list()[0] or "" for names_ in names)
    return own_line_name(index.profile, file, function, int(lines.line[row]))


def own_line_name(
    profile: ProfileData, file: str, function: str, line: int, last: int | None = None
) -> str:
    """Return the name of a line of the user's code, or of several; see `launcher_name`."""
    if last is not None and last != line:
        # In a loop, the last one can be above.
        text, lines = "", f"lines {line} {'to' if last > line else 'and'} {last}"
    else:
        text, lines = source_line(profile, file, line), f"line {line}"
    where = base_name(file)
    function = short_function(function)
    if file == profile.info.get("cell") or function == "<module>":
        of_file = "" if file == profile.info.get("cell") else f" of {where}"
        return f"{lines}{of_file}" + (f" ({code(text)})" if text else "")
    source = f": {code(text)}" if text else ""
    return f"{lines} of {code(function)} ({where}{source})"


def op_id_of(index: ProfileIndex, op: int) -> int:
    """Return the id of the op at row `op`; `MISSING` for row `MISSING`."""
    return int(index.profile.tables["ops"]["op_id"][op]) if op >= 0 else MISSING


def capitalised(text: str) -> str:
    """Return a text whose first letter is a capital."""
    return text[:1].upper() + text[1:]


def without_added(recorded_ns: float, added_ns: float) -> str:
    """Return what follows a time without what profiling added to it; empty if that is little.

    Examples
    --------
    >>> without_added(440_000_000, 212_000_000)
    ', without 212 ms that profiling added'
    >>> without_added(440_000_000, 2_000_000)
    ''
    """
    if added_ns < LEAST_STATED_SHARE * recorded_ns or added_ns <= 0:
        return ""
    return f", without {duration(added_ns)} that profiling added"


def time_taken(total_ns: int, wall_ns: int, threads: int, detail: str) -> str:
    """Return how much time something took, in words; times of several threads have no share.

    Parameters
    ----------
    total_ns
        Its time.
    wall_ns
        Wall time of the profile.
    threads
        Number of threads that it ran on.
    detail
        What follows the time.

    Examples
    --------
    >>> time_taken(50_000_000, 100_000_000, 1, " in 5 executions")
    'accounts for 50 % of the wall time (50.0 ms in 5 executions)'
    >>> time_taken(50_000_000, 100_000_000, 2, " in 5 executions")
    'took 50.0 ms in 5 executions, in 2 threads together'
    """
    time = f"{duration(total_ns)}{detail}"
    if threads > 1:
        return f"took {time}, in {threads} threads together"
    return f"accounts for {percent(total_ns / wall_ns)} of the wall time ({time})"
