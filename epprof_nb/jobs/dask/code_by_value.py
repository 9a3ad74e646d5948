"""Code of a notebook or script in the parts of workers: cloudpickle sends it without its file."""

from __future__ import annotations

import ast
import linecache
import sys
import types
import warnings
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.stacks.ownership import BY_VALUE, CELL
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import STACKS
from epprof_nb.files.dataset.part import read_columns, read_manifest, replace_stacks
from epprof_nb.jobs.killed_processes import complete_killed
from epprof_nb.jobs.process_part import part_folders
from epprof_nb.recording.code_texts import CodeTexts, merged_texts
from epprof_nb.recording.stacks.shown_stacks import shown_cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from epprof_nb.data.table import Table


def name_code(job: Path, sources: Mapping[str, str]) -> None:
    """Name the cells of the code that this process sent by value, in the parts of a job.

    Code is found by the qualified name of its function and its first line. Of several cells with
    the same, the last one counts.

    Parameters
    ----------
    job
        Folder of the job.
    sources
        Text of the profiled cell, whose lines submitted the tasks.
    """
    program = _Program()
    for part, _ in part_folders(job):
        with suppress(OSError, ProfileFileError):  # loading says what is wrong with it
            _name_code_of(part, program, sources)


def _name_code_of(part: Path, program: _Program, sources: Mapping[str, str]) -> None:
    complete_killed(part)
    manifest = read_manifest(part)
    if not manifest.tables:
        return
    named: Table | None = None
    texts: dict[str, str] = {}
    if "stacks" in manifest.tables:
        stacks = read_columns(part, manifest, {"stacks": STACKS.names})["stacks"]
        if stacks.names("file").equals(BY_VALUE).any():
            named, texts = _named(stacks, program)
    found = merged_texts(merged_texts(manifest.sources, sources), texts)
    if named is not None or found != manifest.sources:
        replace_stacks(part, replace(manifest, sources=found), named)


def _named(stacks: Table, program: _Program) -> tuple[Table, dict[str, str]]:
    """Return stacks with the cells, or the script, of code that was sent by value, and its text."""
    rows = np.flatnonzero(stacks.names("file").equals(BY_VALUE))
    functions = stacks.names("function").take(rows).to_list()
    first_lines = stacks["first_line"][rows].tolist()
    shown: list[str | None] = []
    owners: list[str | None] = []
    texts = CodeTexts()
    for function, first in zip(functions, first_lines, strict=True):
        file = program.files.get((function or "", first))
        name = None if file is None else shown_cell(file)
        if file is not None and name is not None:
            is_cell = CELL.search(name) is not None
            texts.add(file, 1 if is_cell else first, shown=name, whole=is_cell)
        shown.append(name)
        owners.append(None if name is None else "cell" if CELL.search(name) else "own")
    return stacks.replace(
        file=stacks.names("file").replaced(rows, CategoryColumn.of(shown)),
        owner=stacks.names("owner").replaced(rows, CategoryColumn.of(owners)),
    ), texts.by_file()


class _Program:
    """The code of the cells of a notebook, and of the program that runs."""

    @cached_property
    def files(self) -> dict[tuple[str, int], str]:
        """Qualified name and first line of each function to the file of its code object."""
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        files = [main] if isinstance(main, str) else []
        files += [file for file in [*linecache.cache] if CELL.search(file)]
        found = {}
        for file in files:
            with suppress(Exception):  # such as a cell of another language
                for code in _functions("".join(linecache.getlines(file)), file):
                    found[code.co_qualname, code.co_firstlineno] = file
        return found


def _functions(text: str, file: str) -> Iterator[types.CodeType]:
    """Yield the code objects in a source."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes in the user's strings
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        codes = [compile(text, file, "exec", flags=flags, dont_inherit=True)]
    while codes:
        code = codes.pop()
        yield code
        codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
