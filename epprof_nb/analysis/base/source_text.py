"""Source text of the profiled cells, by line."""

from __future__ import annotations

import ast
import re
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.data.profile_data import ProfileData


def split_lines(text: str) -> list[str]:
    """Split a source into lines as Python's grammar does; the line ends are removed."""
    # str.splitlines would also split at form feeds.
    return re.split(r"\r\n|\r|\n", text)


def line_text(lines: Sequence[str], line: int) -> str:
    """Return a line (from 1) without its indentation; empty if there is no such line."""
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def statement_starts(text: str) -> dict[int, int]:
    r"""Return the first line of the innermost statement of each line; empty if it does not parse.

    Lines of IPython's magics count as empty. Decorators are a part of the statement that begins
    with ``def`` or ``class``.

    Examples
    --------
    >>> statement_starts("%time\nfor x in y:\n    f(\n        x)\n")
    {2: 2, 3: 3, 4: 3}
    >>> statement_starts("@cache\ndef f():\n    pass\n")
    {1: 2, 2: 2, 3: 3}
    """
    tree = syntax_tree(text)
    if tree is None:
        return {}
    magics = {number for number, line in enumerate(split_lines(text), 1) if line[:1] in "%!?"}
    starts: dict[int, int] = {}
    for node in ast.walk(tree):  # statements come before those in them
        if isinstance(node, ast.stmt) and node.lineno not in magics:
            decorators: list[ast.expr] = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
            last = node.end_lineno or node.lineno
            starts |= dict.fromkeys(range(first, last + 1), node.lineno)
    return dict(sorted(starts.items()))


def function_lines(text: str) -> list[tuple[str, range]]:
    r"""Return the names of the functions of a source, as ``__qualname__``, and their bodies' lines.

    Examples
    --------
    >>> function_lines("class A:\n    def f(self):\n        pass\ndef g(): pass\n")
    [('A.f', range(3, 4)), ('g', range(4, 5))]
    """
    found: list[tuple[str, range]] = []
    todo: list[tuple[ast.AST, str]] = [(tree, "")] if (tree := syntax_tree(text)) else []
    while todo:
        node, around = todo.pop()
        name = f"{around}{getattr(node, 'name', '')}"
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append((name, range(node.body[0].lineno, (node.end_lineno or 0) + 1)))
            around = f"{name}.<locals>."
        elif isinstance(node, ast.ClassDef):
            around = f"{name}."
        todo += [(child, around) for child in reversed([*ast.iter_child_nodes(node)])]
    return found


@lru_cache(maxsize=4)
def syntax_tree(text: str) -> ast.Module | None:
    """Return the syntax tree of a source whose magics count as ``pass``; None if it has none.

    The tree is shared: it must not be changed. The text of a file has only some functions; classes
    around them are missing, and are ``if True`` in the tree.
    """
    lines = [re.sub(r"^(\s*)[%!?].*", r"\1pass", line) for line in split_lines(text)]
    return _parsed(lines) or _parsed(_with_blocks(lines))


def _parsed(lines: list[str]) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in the user's strings
            return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _with_blocks(lines: list[str]) -> list[str]:
    """Return lines in which methods are in a block, as the text of a file lacks their classes."""
    found, base = list(lines), None
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if indent == len(line) or (base is not None and indent >= base):
            continue
        if number and indent and not found[number - 1].strip():
            found[number - 1] = "if True:"
        base = indent
    return found


_CLOCKS = re.compile(
    r"\b(perf_counter|monotonic|process_time|timeit|elapsed_time|get_elapsed_time|time\.time)"
    r"(_ns)?\b"
)


def reads_clock(text: str) -> bool:
    """Return whether a source reads a clock.

    Examples
    --------
    >>> reads_clock("begin = time.perf_counter()"), reads_clock("monotonically = f(times)")
    (True, False)
    """
    return _CLOCKS.search(text) is not None


def source_line(profile: ProfileData, cell: str | None, line: int) -> str:
    """Return a cell's line without its indentation; empty if it is unknown."""
    return line_text(split_lines(profile.sources.get(cell or "", "")), line)
