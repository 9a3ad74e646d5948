"""Transformation of ``%%gpuprofile`` cells into the syntax tree that IPython runs.

The line of the magic becomes the statement ``__epprof_begin__('options')``, so that IPython runs
the cell itself. Variables, the last expression, ``await``, tracebacks and interrupts work as
usual, and lines keep their numbers. The hooks that start and end the session, the repeats, and
the markers of `epprof_nb.recording.statements.instrument_cell` are then added to the syntax tree.
"""

from __future__ import annotations

import ast
import copy
import re
import warnings
from typing import TYPE_CHECKING

from IPython.core.inputtransformer2 import cell_magic

from epprof_nb.recording.statements.instrument_cell import at_position, end_of_code, instrument
from epprof_nb.recording.statements.leading_statements import is_future_import, length_of_head
from epprof_nb.util.format import format_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.notebook.arguments import Request
    from epprof_nb.recording.statements.statement_registry import Cell

BEGIN = "__epprof_begin__"
START = "__epprof_start__"
RECORD = "__epprof_record__"
WARM_UP = "__epprof_warm_up__"
REPEAT = "__epprof_repeat__"
EXPERIMENT = "__epprof_experiment__"
END = "__epprof_end__"
GUARD = "__epprof_guard__"
VALUE = "__epprof_value__"

_MAGIC_LINE = re.compile(r"%%gpuprofile(?:\s+(.*?))?\s*$")


def transform_input(lines: list[str]) -> list[str]:
    """Turn the line of the magic into a statement (an input transformer of IPython).

    The result depends only on the text, because IPython may transform a cell several times. Empty
    lines above the magic are moved below it, so that the code keeps its line numbers.
    """
    above = _empty_lines(lines)
    match = _MAGIC_LINE.match(lines[above]) if above < len(lines) else None
    if not match:
        return lines
    rest = lines[above + 1 :]
    between = _empty_lines(rest)
    if between < len(rest) and rest[between].startswith("%%"):
        rest = rest[:between] + cell_magic(rest[between:])
    return [f"{BEGIN}({match[1] or ''!r})\n", *["\n"] * above, *rest]


# With this attribute IPython skips the transformer when it checks whether a cell is complete. It
# must then see the magic itself, which ends with an empty line.
transform_input.has_side_effects = True  # type: ignore[attr-defined]


def magic_line(source: str, options: str) -> int:
    """Return the number of lines above the magic with these options.

    This is 0 unless another cell magic precedes it.
    """
    lines = source.splitlines()
    first = _empty_lines(lines)
    for number, line in enumerate(lines):
        match = _MAGIC_LINE.match(line)
        if match and (match[1] or "") == options:
            return 0 if number == first else number
    return 0


def begin_options(module: ast.Module) -> str | None:
    """Return the options of the magic if `transform_input` transformed this cell, else None."""
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

    The code becomes a single node, so that IPython compiles nothing during the session. Another
    node gives IPython the value of the last expression to display.

    Parameters
    ----------
    body
        The user's statements, which may be changed.
    request
        The parsed options: repeats, and whether to mark the statements.
    cell
        The cell that contains the statements.
    first_line
        Number of lines of the cell above the parsed text.
    flags
        Compiler flags of the cell.
    shows_last
        Whether IPython displays the value of a last statement that is not an expression. It must
        then see that statement itself.

    Returns
    -------
    nodes, warning
        The nodes, and the reason if the cell must run without markers and repeats.
    """
    try:
        for node in body:  # from other transformers; IPython does this after the last one
            ast.fix_missing_locations(node)
        plain = copy.deepcopy(body)
        # A misplaced break or return would become valid inside the loop added for repeats.
        is_wrong = _compile_error(plain, flags) is not None
    except RecursionError as error:
        return _unmarked(body), _not_marked(error)
    head = length_of_head(body)
    if is_wrong or head == len(body):
        return _unmarked(plain), None  # IPython reports the error
    if any(is_future_import(node) for node in body[head:]):
        return _unmarked(plain), _warning(
            "an import from __future__ follows other statements",
            "Move the import to the top of the cell to avoid this message.",
        )
    try:
        marked = without_global(body[head:])
        if request.lines:
            marked = instrument(marked, cell, first_line=first_line)
        code = _profiled(marked, without_global(plain[head:]), request, shows_last=shows_last)
        nodes = [*body[:head], *code]
        failure = _compile_error(nodes, flags)
    except Exception as error:  # noqa: BLE001 - the code must run in any case
        failure = error
    if failure is None:
        return nodes, None
    return _unmarked(plain), _not_marked(failure)


def _unmarked(body: list[ast.stmt]) -> list[ast.stmt]:
    """Build the nodes that run the code once, with the session and without markers."""
    return [_call(START, body[0]), *body]


def _not_marked(error: Exception) -> str:
    """Return the warning that an error kept the statements of a cell from being ops."""
    if isinstance(error, RecursionError):
        return _warning(
            "its code is nested too deeply, as in one expression of hundreds of terms",
            "Split the longest statement to record its lines.",
        )
    return _warning(format_error(error), "Use --no-lines to avoid this message.")


def _warning(reason: str, advice: str) -> str:
    return (
        f"the statements of this cell cannot be recorded as ops ({reason}). The cell runs once, "
        f"without them. {advice}"
    )


def _profiled(
    marked: list[ast.stmt], plain: list[ast.stmt], request: Request, *, shows_last: bool
) -> list[ast.stmt]:
    at = plain[0]
    steps: list[ast.stmt] = []
    if request.warmup:
        steps.append(_while(WARM_UP, copy.deepcopy(plain), at))
    repeats: list[ast.stmt] = []
    if request.repeat > 1 or request.experiment:
        repeated = copy.deepcopy(marked)
        if request.lines:
            repeated.append(end_of_code(marked[-1]))
        repeats.append(_while(REPEAT, repeated, at))
    if request.experiment:  # which may want another recording
        repeats.append(_while(EXPERIMENT, copy.deepcopy(plain), at))
        steps.append(_while(RECORD, repeats, at))
    else:
        steps += [_call(START, at), *repeats]
    *before, last = marked
    steps += before
    if isinstance(last, ast.Expr):
        steps.append(_call(END, last, last.value))
        return [_guarded(steps, at), ast.copy_location(_call(VALUE, last), last)]
    if shows_last:
        return [_guarded(steps, at), last]
    return [_guarded([*steps, last, _call(END, last)], at)]


def _compile_error(nodes: Sequence[ast.stmt], flags: int) -> Exception | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shown when IPython compiles the code
        try:
            for node in nodes:
                compile(ast.Module([node], []), "<cell>", "exec", flags, dont_inherit=True)
        except SyntaxError as error:
            error.filename = None  # the message would end with the name of this file
            return error
        except RecursionError:
            raise
        except Exception as error:  # noqa: BLE001 - other transformers may build any tree
            return error
    return None


def without_global(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Replace ``global`` outside functions and classes.

    It has no effect there, as IPython compiles each statement by itself. In a single node it would
    be an error after a use of the name.
    """
    remover = _GlobalRemover()
    return [remover.visit(node) for node in body]


class _GlobalRemover(ast.NodeTransformer):
    def visit_Global(self, node: ast.Global) -> ast.Pass:
        return ast.copy_location(ast.Pass(), node)

    def visit_FunctionDef(self, node: ast.AST) -> ast.AST:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef  # noqa: N815


def _empty_lines(lines: Sequence[str]) -> int:
    count = 0
    while count < len(lines) and not lines[count].strip():
        count += 1
    return count


def _name(name: str, at: ast.stmt) -> ast.Name:
    return at_position(ast.Name(name, ast.Load()), at)


def _call(hook: str, at: ast.stmt, *arguments: ast.expr) -> ast.Expr:
    call = at_position(ast.Call(_name(hook, at), [*arguments], []), at)
    return at_position(ast.Expr(call), at)


def _while(hook: str, body: list[ast.stmt], at: ast.stmt) -> ast.While:
    return at_position(ast.While(_call(hook, at).value, body, []), at)


def _guarded(nodes: list[ast.stmt], at: ast.stmt) -> ast.stmt:
    # The session ends at the exception, before IPython formats the traceback. Unlike an `except`
    # that raises again, a `with` restores `frame.f_lineno`, which IPython shows.
    guard = ast.withitem(_call(GUARD, at).value)
    return at_position(ast.With([guard], nodes), at)
