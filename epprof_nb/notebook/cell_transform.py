"""From the text of a ``%%gpuprofile`` cell to the nodes that IPython runs.

The magic's line becomes one statement, ``__epprof_begin__('options')``, so that IPython runs the
cell itself: its variables, its last expression, ``await``, tracebacks and interrupts are
IPython's business as ever, and lines keep their numbers. The syntax tree then gets the hooks
that start and end the session, the repeats, and the markers of `epprof_nb.instrument.cell`.
"""

from __future__ import annotations

import ast
import copy
import re
import warnings
from typing import TYPE_CHECKING

from IPython.core.inputtransformer2 import cell_magic

from epprof_nb.instrument.cell import instrument, placed
from epprof_nb.notebook.cell_run import why

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.instrument.statements import Cell
    from epprof_nb.notebook.arguments import Request

BEGIN = "__epprof_begin__"
START = "__epprof_start__"
WARM_UP = "__epprof_warm_up__"
REPEAT = "__epprof_repeat__"
END = "__epprof_end__"
FAIL = "__epprof_fail__"
VALUE = "__epprof_value__"

_MAGIC_LINE = re.compile(r"%%gpuprofile(?:\s+(.*?))?\s*$")


def transform_input(lines: list[str]) -> list[str]:
    """Turn the line of the magic into a statement (an input transformer of IPython).

    It depends on nothing but the text: IPython may transform a cell several times. Empty lines
    above the magic go below it, so that the rest keeps the numbers that the editor shows.
    """
    above = _empty_lines(lines)
    found = _MAGIC_LINE.match(lines[above]) if above < len(lines) else None
    if not found:
        return lines
    rest = lines[above + 1 :]
    between = _empty_lines(rest)
    if between < len(rest) and rest[between].startswith("%%"):
        rest = rest[:between] + cell_magic(rest[between:])
    return [f"{BEGIN}({found[1] or ''!r})\n", *["\n"] * above, *rest]


# Where IPython asks whether a cell is complete, it must see the magic, which ends only with an
# empty line; this attribute has it leave the transformer out there.
transform_input.has_side_effects = True  # type: ignore[attr-defined]


def magic_line(source: str, options: str) -> int:
    """Lines of `source` above the text that the magic with these options begins.

    0 unless another cell magic stands above it.
    """
    lines = source.splitlines()
    first = _empty_lines(lines)
    for number, line in enumerate(lines):
        found = _MAGIC_LINE.match(line)
        if found and (found[1] or "") == options:
            return 0 if number == first else number
    return 0


def begin_options(module: ast.Module) -> str | None:
    """Return the magic's options if the module is a cell that `transform_input` changed."""
    match module.body[:1]:
        case [ast.Expr(ast.Call(ast.Name(name), [ast.Constant(str(options))], []))]:
            return options if name == BEGIN else None
    return None


def assemble(
    body: list[ast.stmt],
    request: Request,
    cell: Cell,
    *,
    first_line: int,
    flags: int,
    shows_last: bool,
) -> tuple[list[ast.stmt], str | None]:
    """Build the nodes that run the code with warm-ups, repeats, session and markers.

    The code becomes one node, so that IPython compiles nothing while the session runs; one more
    node gives IPython the value of the last expression to show.

    Parameters
    ----------
    body
        The user's statements; they may be changed.
    request
        How often to run them, and whether to mark the statements.
    cell
        Where they come from.
    first_line
        Lines of the cell above the text that was parsed.
    flags
        Compiler flags that IPython compiles the cell with.
    shows_last
        Whether IPython shows the value of a last statement that is no expression; it must then
        see that statement itself.

    Returns
    -------
    nodes, note
        The nodes, and why the cell runs without marks and repeats, if it has to.
    """
    plain = copy.deepcopy(body)
    unmarked = [_call(START, plain[0]), *plain]
    # Inside a loop of ours, a misplaced break or return would be taken for a good one.
    if not _compiles(plain, flags):
        return unmarked, None  # IPython will say what is wrong with it
    futures = 0
    while futures < len(body) and _is_future(body[futures]):
        futures += 1
    if futures == len(body):
        return unmarked, None
    try:
        marked = body[futures:]
        if request.lines:
            marked = instrument(marked, cell, first_line=first_line)
        code = _profiled(marked, plain[futures:], request, shows_last=shows_last)
        nodes = [*body[:futures], *code]
        reason = None if _compiles(nodes, flags) else "it may nest too many blocks"
    except Exception as error:  # noqa: BLE001 - the code must run whatever happens here
        reason = why(error)
    if reason is None:
        return nodes, None
    return unmarked, (
        f"the statements of this cell could not be marked as ops ({reason}). It runs once, without "
        "them; with --no-lines this message stays away."
    )


def _profiled(
    marked: list[ast.stmt], plain: list[ast.stmt], request: Request, *, shows_last: bool
) -> list[ast.stmt]:
    at = plain[0]
    steps: list[ast.stmt] = []
    if request.warmup:
        steps.append(_while(WARM_UP, copy.deepcopy(plain), at))
    steps.append(_call(START, at))
    if request.repeat > 1:
        steps.append(_while(REPEAT, copy.deepcopy(marked), at))
    *before, last = marked
    steps += before
    if isinstance(last, ast.Expr):
        steps.append(_call(END, last, last.value))
        return [_guarded(steps, at), ast.copy_location(_call(VALUE, last), last)]
    if shows_last:
        return [_guarded(steps, at), last]
    return [_guarded([*steps, last, _call(END, last)], at)]


def _compiles(nodes: Sequence[ast.stmt], flags: int) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are shown when IPython compiles the code
        try:
            for node in nodes:
                compile(ast.Module([node], []), "<cell>", "exec", flags, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _empty_lines(lines: Sequence[str]) -> int:
    count = 0
    while count < len(lines) and not lines[count].strip():
        count += 1
    return count


def _name(name: str, at: ast.stmt) -> ast.Name:
    return placed(ast.Name(name, ast.Load()), at)


def _call(hook: str, at: ast.stmt, *arguments: ast.expr) -> ast.Expr:
    call = placed(ast.Call(_name(hook, at), [*arguments], []), at)
    return placed(ast.Expr(call), at)


def _while(hook: str, body: list[ast.stmt], at: ast.stmt) -> ast.While:
    return placed(ast.While(_call(hook, at).value, body, []), at)


def _guarded(nodes: list[ast.stmt], at: ast.stmt) -> ast.stmt:
    # The session ends with the error, before IPython formats its traceback.
    reraise = placed(ast.Raise(None, None), at)
    handler = ast.ExceptHandler(_name("BaseException", at), None, [_call(FAIL, at), reraise])
    return placed(ast.Try(nodes, [ast.copy_location(handler, reraise)], [], []), at)
