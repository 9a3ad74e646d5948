"""Access to IPython's shell: cell numbers, compiler flags and code execution."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
from typing import Any

from IPython.core.error import UsageError


def cell_name(shell: Any) -> str:  # noqa: ANN401 - IPython's shell has attributes of its traits
    """Return the name of the running cell, such as ``In[3]``."""
    # The shell may already have the execution count of the next cell.
    frame = inspect.currentframe()
    while frame is not None:
        label = shell.compile.format_code_name(frame.f_code.co_filename)
        if label and re.fullmatch(r"In\[\d+\]", label[1]):
            return str(label[1])
        frame = frame.f_back
    return f"In[{shell.execution_count}]"


def compiler_flags(shell: Any) -> int:  # noqa: ANN401
    """Return the compiler flags that the shell uses for cells."""
    flags: int = shell.compile.flags
    return flags | (ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if shell.autoawait else 0)


def register_source(shell: Any, transformed: str, source: str) -> str:  # noqa: ANN401
    """Register code so that tracebacks find its text, and return its file name."""
    number = int(cell_name(shell)[3:-1])
    return str(shell.compile.cache(transformed, number, raw_code=source))


def patch_linecache_first_line(filename: str, line: str) -> None:
    """Make tracebacks show `line` as the first line of a cell."""
    entry = linecache.cache.get(filename)
    if entry is not None and len(entry) > 1 and entry[2]:
        entry[2][0] = f"{line}\n"


def execute(shell: Any, node: ast.stmt | ast.Expression, filename: str) -> object:  # noqa: ANN401
    """Run a statement, or evaluate an expression, in the user's namespace."""
    tree = node if isinstance(node, ast.Expression) else ast.Module([node], [])
    with shell.compile.extra_flags(compiler_flags(shell)):
        code = shell.compile(tree, filename, "eval" if tree is node else "exec")
    if code.co_flags & inspect.CO_COROUTINE:
        raise UsageError(
            "%gpuprofile does not support top-level await when it is called from other code. "
            "Make %%gpuprofile the first line of a cell and put the code below it."
        )
    return eval(code, shell.user_global_ns, shell.user_ns)  # noqa: S307 - the user's own code
