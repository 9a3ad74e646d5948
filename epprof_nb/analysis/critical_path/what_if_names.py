"""The work that a name stands for in `Profile.what_if`: ops, lines, functions, kernels and more."""

from __future__ import annotations

import difflib
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.device_work import MEMCPY
from epprof_nb.analysis.base.op_tree import NO_OP
from epprof_nb.analysis.base.source_text import function_lines
from epprof_nb.analysis.base.stack_lines import StackLines, short_function
from epprof_nb.analysis.base.unknown_device_times import has_waits, is_trace
from epprof_nb.analysis.critical_path.unrecorded_runs import UnrecordedRuns
from epprof_nb.analysis.frameworks.training_phases import MODULE_TYPES, is_framework_op, is_of_type
from epprof_nb.data.op_args import arguments
from epprof_nb.util.format import shorten

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.by_line import PathLines
    from epprof_nb.arrays.types import BoolArray, IntArray

WAITS, COPIES = "waits", "copies"
_LINE = re.compile(r"(?:(?P<file>.+?)[\s:,]+)?line\s+(?P<line>\d+)")
_PATTERN = re.compile(r"[*?]|\[.+\]")
_WHOLE = 0.9
"""Share of the wall time above which a statement is nearly the whole profile."""
_SHOWN = 60
"""Number of characters of an unknown name in a message."""


class NamedWork(NamedTuple):
    """Work with a name: a mask of ops or of activities, pairs of lines, or all waits."""

    ops: BoolArray | None = None
    activities: BoolArray | None = None
    lines: IntArray | None = None
    waits: bool = False


class Names:
    """Names of the work of a profile."""

    def __init__(self, index: ProfileIndex, lines: PathLines) -> None:
        self._index, self._lines = index, lines

    def work(self, name: str) -> NamedWork:
        """Return what a name of the user stands for; ValueError if nothing has it."""
        if not name:  # things without a name have nothing else in common
            raise ValueError(self._unknown(name))
        ops = self._named_ops(name)
        if ops.any():
            return NamedWork(ops)
        if name in (WAITS, COPIES):
            self._check_recorded(name)
        if name == WAITS:
            return NamedWork(waits=True)
        if name == COPIES:
            return NamedWork(activities=self._index.kinds == MEMCPY)
        chosen = self._lines_named(name)
        if len(chosen):
            remedy = "epprof_nb.op around its code gives it a name."
            return self._work_of_lines(name, chosen, remedy)
        names = self._index.profile.tables["activities"].names("name")
        activities = _matching(names.categories, name)[names.codes]
        if activities.any():
            return NamedWork(activities=activities)
        modules = self._modules_of_class(name)
        return NamedWork(modules) if modules.any() else self._named_function(name)

    def _named_function(self, name: str) -> NamedWork:
        chosen = self._lines_of_function(name)
        if not len(chosen):
            raise ValueError(self._unknown(name))
        return self._work_of_lines(
            name,
            chosen,
            "Define it in the profiled cell or script, whose statements are recorded, or put "
            "epprof_nb.op around its code.",
        )

    def _work_of_lines(self, name: str, chosen: IntArray, remedy: str) -> NamedWork:
        of_lines = self._lines.pairs_of(chosen)
        if not len(of_lines):
            raise ValueError(
                f"{name!r} is known only from samples of the host, so nothing says when it "
                f"ran.{self._callers(chosen)} {remedy}"
            )
        return NamedWork(lines=of_lines)

    def _check_recorded(self, name: str) -> None:
        if not is_trace(self._index.profile.info):
            return
        kind = "API calls" if name == WAITS else "device work"
        if not (has_waits(self._index) if name == WAITS else self._index.is_device_work.any()):
            raise ValueError(
                f"the trace has no {kind}, so nothing says what its {name} cost. Name ops or lines "
                "instead, or record the code with epprof_nb.profile."
            )

    def _named_ops(self, name: str) -> BoolArray:
        ops = self._index.profile.tables["ops"]
        found = np.zeros(len(ops), np.bool_)
        for column in ("name", "op_type"):
            names = ops.names(column)
            found |= _matching(names.categories, name)[names.codes]
        return found

    def _modules_of_class(self, name: str) -> BoolArray:
        """Return the calls of modules of a class, and their backward passes."""
        ops, calls = self._index.profile.tables["ops"], is_of_type(self._index, *MODULE_TYPES)
        (classes,) = arguments(ops.names("args"), np.flatnonzero(calls), ["class"])
        calls[calls] = _matching(tuple(map(str, classes.distinct)), name)[classes.codes]
        paths = ops.names("name").codes
        return is_framework_op(self._index) & np.isin(paths, paths[calls])

    def _lines_named(self, name: str) -> IntArray:
        found = _LINE.fullmatch(name.strip())
        if found is None:
            return np.empty(0, np.int64)
        lines, file = self._lines.lines, found["file"]
        chosen = np.flatnonzero(lines.number == int(found["line"]))
        if file is None:
            return chosen
        return np.array([i for i in chosen.tolist() if _is_file(lines.file[i], file)], np.int64)

    def _lines_of_function(self, name: str) -> IntArray:
        """Return the lines of all functions of a name, with or without what is around them."""
        lines, sources = self._lines.lines, self._index.profile.sources
        bodies = {file: function_lines(sources.get(file, "")) for file in {*lines.file}}
        found = [
            any(
                wanted in (function, short_function(function)) and number in body
                for wanted in (name, name.removesuffix("()"))
                for function, body in bodies[file]
            )
            or name in ((own := lines.function[line] or ""), short_function(own))
            for line, (file, number) in enumerate(
                zip(lines.file, lines.number.tolist(), strict=True)
            )
        ]
        return np.flatnonzero(found)

    def _callers(self, chosen: IntArray) -> str:
        """Return what to name instead of lines that only stacks have: the statements around.

        Statements that took nearly all of the time would say nothing about them.
        """
        lines, parent = self._lines.lines, self._index.cached(StackLines).parent
        stacks, found = np.flatnonzero(np.isin(lines.of_stack, chosen)), set[int]()
        while len(stacks):
            around = lines.of_stack[stacks]
            found.update(around[(around >= 0) & (lines.statement[around] >= 0)].tolist())
            stacks = np.unique(parent[stacks])
            stacks = stacks[stacks >= 0]
        short = [i for i in sorted(found) if not self._is_whole(i)]
        names = [f"'{lines.file[i]} line {lines.number[i]}'" for i in short[:3]]
        return f" Name the statement that calls it: {' or '.join(names)}." if names else ""

    def _is_whole(self, line: int) -> bool:
        """Return whether the statement of a line took nearly all of the wall time."""
        lines, ops = self._lines.lines, self._index.profile.tables["ops"]
        rows = ops.names("cell").equals(lines.file[line]) & (ops["line"] == lines.number[line])
        rows &= ops.names("op_type").equals("line")
        took = int((ops["end_ns"] - ops["start_ns"]).max(initial=0, where=rows))
        return took > _WHOLE * self._index.profile.wall_ns

    def _unknown(self, name: str) -> str:
        """Return that nothing has a name, and what does."""
        text = f"nothing in the profile is called {shorten(name, _SHOWN)!r}."
        if name == NO_OP:
            return (
                f"{NO_OP!r} is the time in which no op was open. Name a line, or put epprof_nb.op "
                "around the code."
            )
        if _LINE.fullmatch(name.strip()):
            text = (
                f"nothing was recorded at {shorten(name, _SHOWN)!r}: no statement, call or sample. "
                "It may be a short line of a function, or not have run. epprof_nb.op around its "
                "code gives it a name."
            )
        return text + self._hint(name)

    def _hint(self, name: str) -> str:
        tables = self._index.profile.tables
        known = {
            *tables["ops"].names("name").categories,
            *tables["activities"].names("name").categories,
        }
        close = difflib.get_close_matches(name, sorted(known)[:10_000], n=3)
        hint = f" Similar names: {', '.join(map(repr, close))}." if close else ""
        if self._index.cached(UnrecordedRuns).has_unknown:
            hint += (
                " No run of an ONNX Runtime session was recorded node by node: ort_nodes='every' "
                "records the nodes of each run."
            )
        return (
            f"{hint} Name an op, a type of ops, a class of modules, a function, a kernel, a line "
            f"as 'line 3' or 'train.py line 3', {WAITS!r} or {COPIES!r}. Patterns have *, ? and "
            "[ab]."
        )


def _matching(names: tuple[str, ...], wanted: str) -> BoolArray:
    """Return which names match, and False for a missing one as the last value.

    Names may have brackets themselves, as those of cells and of C++ operators, so that a pattern
    stands for them, too.
    """
    found = [name == wanted for name in names]
    if not any(found) and ("*" in wanted or _PATTERN.search(wanted)):
        literal = wanted.replace("[", "[[]")
        found = [fnmatchcase(name, literal) or fnmatchcase(name, wanted) for name in names]
    return np.array([*found, False], np.bool_)


def _is_file(path: str, wanted: str) -> bool:
    return path == wanted or path.replace("\\", "/").endswith("/" + wanted)
