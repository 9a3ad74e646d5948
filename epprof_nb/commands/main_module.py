"""Run a script or module as ``__main__``, as ``python script.py`` and ``python -m module`` do.

The statements of the script are marked as ops, like the statements of a profiled cell.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import os
import sys
import tokenize
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from epprof_nb.core.errors import EpprofError
from epprof_nb.recording.statements.instrument_cell import instrument
from epprof_nb.recording.statements.leading_statements import length_of_head
from epprof_nb.recording.statements.markers import install_markers
from epprof_nb.recording.statements.statement_registry import Cell
from epprof_nb.util.shadowed_modules import leave_to_program


class ScriptNotFoundError(EpprofError):
    """The script or module to run does not exist or cannot be read."""


@dataclass(slots=True)
class MainModule:
    """Code to run as ``__main__``.

    Attributes
    ----------
    cell
        Name and source of the script. The source is empty if it is not available.
    path
        Absolute path of the file.
    argument
        The value of ``sys.argv[0]``.
    folder
        The first entry of ``sys.path``.
    spec
        Module specification; None for a script.
    """

    cell: Cell
    path: str
    argument: str
    folder: str
    spec: ModuleSpec | None = None

    def prepare(self, arguments: list[str]) -> None:
        """Set ``sys.argv`` and ``sys.path`` for the script."""
        sys.argv[:] = [self.argument, *arguments]
        if not sys.flags.safe_path:
            sys.path[0] = self.folder
            leave_to_program(self.folder)

    def compile(self, *, lines: bool) -> CodeType:
        """Compile the script, with markers if `lines`.

        Raises
        ------
        SyntaxError
            If the script is not valid Python.
        """
        if not self.cell.source and self.spec is not None and self.spec.loader is not None:
            loader: Any = self.spec.loader
            code: CodeType | None = loader.get_code(self.spec.name)
            if code is None:
                raise ScriptNotFoundError(f"module {self.spec.name} has no Python code to run")
            return code
        plain = compile(self.cell.source, self.path, "exec", dont_inherit=True)
        if not lines:
            return plain
        try:
            tree = ast.parse(self.cell.source, self.path)
            first = length_of_head(tree.body)
            tree.body[first:] = instrument(tree.body[first:], self.cell)
            return compile(tree, self.path, "exec", dont_inherit=True)
        except (RecursionError, SyntaxError, ValueError):
            return plain  # markers in deeply nested blocks can exceed limits of the compiler

    def execute(self, code: CodeType) -> None:
        """Run the code in a new ``__main__`` module, which remains after the code has ended."""
        main = ModuleType("__main__")
        loader = SourceFileLoader("__main__", self.path) if self.spec is None else self.spec.loader
        vars(main).update(
            __file__=self.path,
            __loader__=loader,
            __spec__=self.spec,
            __package__=None if self.spec is None else self.spec.parent,
            __builtins__=builtins,
        )
        if sys.version_info < (3, 14):
            vars(main).update(__annotations__={}, __cached__=None)
        if self.spec is not None:
            main.__cached__ = self.spec.cached  # type: ignore[attr-defined]
        install_markers(vars(main))
        sys.modules["__main__"] = main
        exec(code, vars(main))  # noqa: S102 - running the user's script is the purpose


def find_script(path: str) -> MainModule:
    """Return the script in a file.

    Raises
    ------
    ScriptNotFoundError
        If the file cannot be read as Python source.
    """
    try:
        with tokenize.open(path) as file:
            source = file.read()
    except IsADirectoryError:
        raise ScriptNotFoundError(
            f"{path} is a folder; name a script in it, or run it as a module with -m"
        ) from None
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        raise ScriptNotFoundError(f"cannot read the script {path}: {error}") from None
    absolute = os.path.realpath(path)
    name = os.path.basename(path)  # noqa: PTH119
    return MainModule(Cell(name, source), os.path.abspath(path), path, os.path.dirname(absolute))  # noqa: PTH100, PTH120


def find_module(name: str) -> MainModule:
    """Return the module that ``python -m name`` runs.

    Raises
    ------
    ScriptNotFoundError
        If the module does not exist or cannot be run.
    """
    folder = os.getcwd()  # noqa: PTH109
    if not sys.flags.safe_path:
        sys.path[0] = folder  # find_spec imports the packages around the module
        leave_to_program(folder)
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name = f"{name}.__main__"
            spec = importlib.util.find_spec(name)
    except (ImportError, ValueError) as error:
        raise ScriptNotFoundError(f"cannot find the module {name}: {error}") from None
    if spec is None or spec.loader is None:
        raise ScriptNotFoundError(f"no module named {name}; see `python -m {name}`")
    loader: Any = spec.loader
    if not hasattr(loader, "get_code"):
        raise ScriptNotFoundError(f"module {name} has no Python code to run")
    source = (loader.get_source(name) if hasattr(loader, "get_source") else None) or ""
    path = spec.origin or name
    return MainModule(Cell(name, source), path, path, folder, spec)
