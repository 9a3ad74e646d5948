"""Source locations and text of functions that are ops: ranges, PyTorch modules, JAX functions."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb.data.op_args import arguments
from epprof_nb.recording.code_texts import CodeTexts
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Container

    from epprof_nb.data.table import Table

_FUNCTIONS = 40

_lock = fork_safe_lock()
_of_ranges: dict[str, tuple[str, int]] = {}
"""Op name to the file and first line of the most recently decorated function."""
_of_classes: dict[str, tuple[str, int]] = {}
"""Class of a module to the file and first line of the method that a call runs."""


class FunctionSources(NamedTuple):
    """Source of the functions of a profile, for at most forty of each kind.

    Attributes
    ----------
    op_places, class_places
        Op name, or class of a module, to ``{"file", "line"}`` with the first line of the function.
        The file of a function that is defined in a cell is the cell.
    texts
        File name to text, which contains these functions and otherwise blank lines.
    """

    op_places: dict[str, dict[str, Any]]
    class_places: dict[str, dict[str, Any]]
    texts: dict[str, str]


def register(name: str, function: object) -> None:
    """Register the source location of a function that runs inside the range `name`."""
    _register(_of_ranges, name, function)


def register_class(name: str, method: object) -> None:
    """Register the source location of the method that calls of a module of class `name` run."""
    _register(_of_classes, name, method)


def _register(locations: dict[str, tuple[str, int]], name: str, function: object) -> None:
    code = getattr(inspect.unwrap(function), "__code__", None)  # type: ignore[arg-type]
    if code is not None:
        with _lock:
            locations[name] = (code.co_filename, code.co_firstlineno)


def sources_of(ops: Table, cells: Container[str] = ()) -> FunctionSources:
    """Return the source of the functions of a profile's ops, if readable.

    Parameters
    ----------
    ops
        A table of schema `epprof_nb.data.schema.OPS`.
    cells
        Cells that are shown anyway; functions in them are omitted.
    """
    with _lock:
        known, classes = dict(_of_ranges), dict(_of_classes)
    op_types = ops.names("op_type")
    ranges = ops.names("name").take(op_types.equals("range") | op_types.equals("jit"))
    texts = CodeTexts()
    places: list[dict[str, dict[str, Any]]] = []
    for names, locations in (
        (ranges.compact().categories, known),
        (_module_classes(ops), classes),
    ):
        found: dict[str, dict[str, Any]] = {}
        for name in [name for name in names if name in locations][:_FUNCTIONS]:
            file, first = locations[name]
            shown = shown_file(file)
            if shown not in cells and texts.add(file, first, shown=shown):
                found[name] = {"file": shown, "line": first}
        places.append(found)
    return FunctionSources(places[0], places[1], texts.by_file())


def _module_classes(ops: Table) -> list[str]:
    rows = np.flatnonzero(ops.names("category").equals("framework"))
    return [str(name) for name in arguments(ops.names("args"), rows, ["class"])[0].distinct]


def shown_file(file: str) -> str:
    """Return the cell that IPython compiled as this file, such as ``In[3]``, or the name."""
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    compiler = getattr(get_shell() if get_shell else None, "compile", None)
    describe = getattr(compiler, "format_code_name", None)
    named = describe(file) if describe else None
    return named[1] if named else file
