"""Helpers to run code with and without markers, and to read the recorded ops."""

from __future__ import annotations

import ast
import contextlib
import io
import traceback
import warnings
from typing import TYPE_CHECKING

from epprof_nb.recording.statements.instrument_cell import instrument
from epprof_nb.recording.statements.markers import install_markers
from epprof_nb.recording.statements.statement_registry import Cell
from tests.helpers.recorded_ops import drained, recording

if TYPE_CHECKING:
    from types import SimpleNamespace


def run(tree: ast.Module) -> dict:
    """Run code and return its observable results."""
    namespace = {"__name__": "cell"}
    install_markers(namespace)
    out = io.StringIO()
    error = None
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(tree, "<cell>", "exec"), namespace)
        except Exception as raised:
            error = raised
    simple = (int, float, str, list, tuple, dict, set, bool, type(None))
    state = {
        name: repr(value)
        for name, value in namespace.items()
        if not name.startswith("__") and type(value) in simple
    }
    return {"state": state, "out": out.getvalue(), "error": described(error)}


def described(error: BaseException | None) -> list | None:
    if error is None:
        return None
    frames = [
        (f.name, f.lineno, f.end_lineno, f.colno, f.end_colno)
        for f in traceback.extract_tb(error.__traceback__)
        if f.filename == "<cell>"
    ]
    links = [described(error.__cause__), described(error.__context__)]
    return [type(error).__name__, str(error), frames, links]


def marked(source: str, cell: Cell | None = None) -> ast.Module:
    tree = ast.parse(source)
    tree.body = instrument(tree.body, cell or Cell("In[1]", source))
    return tree


def record(source: str) -> list[SimpleNamespace]:
    namespace: dict = {}
    install_markers(namespace)
    code = compile(marked(source), "<cell>", "exec")
    with recording():
        exec(code, namespace)
        return drained()
