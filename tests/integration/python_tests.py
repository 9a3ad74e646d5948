"""Run modules of Python's ``test`` package, plain or instrumented, and print the outcomes.

::

    python tests/integration/python_tests.py {plain,profiled} {functions,cells} MODULE ...

With ``functions`` a module is instrumented as one cell: its tests are functions of a profiled cell.
With ``cells`` the body of each test and each doctest example is a cell of its own. The output is
JSON: {test: outcome}. The outcome of a failed test includes the lines of its traceback.
"""

# ruff: noqa: N802, N815 - the names are those of unittest

from __future__ import annotations

import ast
import builtins
import contextlib
import doctest
import functools
import gc
import importlib.util
import inspect
import io
import json
import re
import sys
import traceback
import unittest
import warnings
from types import CodeType, FunctionType, ModuleType, SimpleNamespace

import epprof_nb
from epprof_nb.notebook import cell_transform
from epprof_nb.notebook.cell_run import OnError
from epprof_nb.recording.statements.instrument_cell import instrument
from epprof_nb.recording.statements.leading_statements import length_of_head
from epprof_nb.recording.statements.markers import install_markers
from epprof_nb.recording.statements.statement_registry import Cell

HOOKS = {
    cell_transform.START: lambda: None,
    cell_transform.GUARD: lambda: OnError(lambda error: None),
    cell_transform.END: lambda value=None: value,
    cell_transform.VALUE: lambda: None,
}
REQUEST = SimpleNamespace(lines=True, warmup=0, repeat=1, experiment=0)
AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
# They exhaust memory or free objects that are deeply nested, or start a Python: that takes a sixth
# of all time, and markers of statements take no part in it.
LEFT_OUT = {
    "test_coroutines.UnawaitedWarningDuringShutdownTest": [
        "test_unawaited_warning_during_shutdown",
    ],
    "test_exceptions.ExceptionTests": [
        "test_memory_error_in_PyErr_PrintEx", "test_trashcan_recursion",
    ],
}  # fmt: skip


def cell_nodes(source: str, body: list[ast.stmt], flags: int, *, profiled: bool) -> list[ast.stmt]:
    """Return the nodes that IPython would compile for a cell, with the markers if `profiled`."""
    if not profiled:
        return body
    nodes, _ = cell_transform.assemble(
        body, REQUEST, Cell("In[1]", source), first_line=0, flags=flags, shows_last=False
    )
    return nodes


def code_of(tree: ast.Module, filename: str, flags: int) -> list[CodeType]:
    """Compile each node by itself, as IPython does."""
    return [
        compile(ast.Module([node], []), filename, "exec", flags, dont_inherit=True)
        for node in tree.body
    ]


def load(name: str, *, profiled: bool) -> tuple[ModuleType, str]:
    """Execute a module of the test package, instrumented as one cell if `profiled`."""
    spec = importlib.util.find_spec(f"test.{name}")
    source = spec.loader.get_source(spec.name)
    tree = ast.parse(source)
    if profiled:
        head = length_of_head(tree.body)
        tree.body[head:] = instrument(tree.body[head:], Cell("In[1]", source))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    install_markers(vars(module))
    exec(compile(tree, spec.origin, "exec", dont_inherit=True), vars(module))
    for owner, tests in LEFT_OUT.items():
        if owner.startswith(f"{name}."):
            for test in tests:
                delattr(vars(module)[owner.removeprefix(f"{name}.")], test)
    return module, source


def tests_as_cells(module: ModuleType, source: str, *, profiled: bool) -> None:
    """Replace each test method by one that executes its body as a cell."""
    for node in ast.parse(source).body:
        owner = vars(module).get(node.name) if isinstance(node, ast.ClassDef) else None
        if not isinstance(owner, type):
            continue
        for method in node.body:
            original = vars(owner).get(getattr(method, "name", None))
            if isinstance(original, FunctionType) and method.name.startswith("test"):
                run = as_cell(module, source, method, original, profiled=profiled)
                setattr(owner, method.name, run)


def as_cell(module, source, method, original, *, profiled):
    """Return a method that executes the body of `method` as a cell."""
    filename = module.__file__
    flags = AWAIT if isinstance(method, ast.AsyncFunctionDef) else 0

    @functools.cache
    def compiled():
        nodes = cell_nodes(source, method.body, flags, profiled=profiled)
        return code_of(ast.Module(nodes, []), filename, flags)

    if flags:

        @functools.wraps(original)
        async def run(self):
            space = {**vars(module), "self": self}
            for code in compiled():
                result = eval(code, space)
                if code.co_flags & inspect.CO_COROUTINE:
                    await result

    else:

        @functools.wraps(original)
        def run(self):
            space = {**vars(module), "self": self}
            for code in compiled():
                exec(code, space)

    return run


def compile_example(source, filename, mode, flags=0, dont_inherit=False):
    """Compile a doctest example with markers."""
    tree = compile(source, filename, mode, flags | ast.PyCF_ONLY_AST, dont_inherit)
    tree.body = instrument(tree.body, Cell("In[1]", source))
    return compile(tree, filename, mode, flags, dont_inherit)


class Outcomes(unittest.TestResult):
    """Collects one line of text per test and subtest."""

    def __init__(self, filename: str) -> None:
        super().__init__()
        self.filename = filename
        self.of: dict[str, str] = {}

    def note(self, test, outcome: str) -> None:
        name = re.sub(r"0x[\da-f]+", "0x", test.id()).removeprefix("test.")
        self.of[name] = f"{self.of[name]}; {outcome}" if name in self.of else outcome

    def failure(self, test, error) -> None:
        kind, value, tb = error
        text = re.sub(r"0x[\da-f]+", "0x", str(value))
        frames = [
            (f.name, f.lineno) for f in traceback.extract_tb(tb) if f.filename == self.filename
        ]
        self.note(test, f"{kind.__name__}: {text[:500]} at {frames}")

    def addSuccess(self, test):
        self.note(test, "ok")

    def addSkip(self, test, reason):
        self.note(test, f"skipped: {reason}")

    def addExpectedFailure(self, test, err):
        self.note(test, "expected failure")

    def addUnexpectedSuccess(self, test):
        self.note(test, "unexpected success")

    def addError(self, test, err):
        self.failure(test, err)

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.failure(subtest, err)


def run(name: str, *, as_cells: bool, profiled: bool) -> dict[str, str]:
    """Run the tests of a module; return {test: outcome}."""
    module, source = load(name, profiled=profiled and not as_cells)
    if as_cells:
        tests_as_cells(module, source, profiled=profiled)
    doctest.compile = compile_example if as_cells and profiled else builtins.compile
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    outcomes = Outcomes(module.__file__)
    gc.freeze()  # many tests collect garbage, which is slow with the syntax trees of modules
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        suite.run(outcomes)
    return outcomes.of


def main() -> None:
    mode, unit, *names = sys.argv[1:]
    profiled = mode == "profiled"
    vars(builtins).update(HOOKS)
    outcomes = {}
    with epprof_nb.profile() if profiled else contextlib.nullcontext():
        for name in names:
            outcomes.update(run(name, as_cells=unit == "cells", profiled=profiled))
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main()
