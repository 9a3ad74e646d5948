"""Descriptions of the columns of every table that a profile returns as a DataFrame.

Each group of tables has a module of this package, and `TABLES` collects them. The docstrings of
`epprof_nb.profiles.Profile` take their columns from it (`with_columns`).
``python -m tests.tools.make_table_docs`` writes ``docs/tables.md`` from it.
"""

from __future__ import annotations

import inspect
import textwrap
from typing import TYPE_CHECKING, TypeVar

from epprof_nb.data.result_columns.analyses import ANALYSES
from epprof_nb.data.result_columns.breakdowns import BREAKDOWNS
from epprof_nb.data.result_columns.comparison import COMPARISON
from epprof_nb.data.result_columns.jobs import JOBS
from epprof_nb.data.result_columns.memory import MEMORY
from epprof_nb.data.result_columns.onnx_nodes import ONNX_NODES
from epprof_nb.data.result_columns.recorded_tables import RECORDS
from epprof_nb.data.result_columns.training import TRAINING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from epprof_nb.data.result_columns.description import ColumnDoc, TableDoc

_F = TypeVar("_F", bound="Callable[..., object]")

_MEANING_WIDTH = 54

TABLES: dict[str, TableDoc] = {
    **RECORDS, **BREAKDOWNS, **ONNX_NODES, **TRAINING, **MEMORY, **ANALYSES, **COMPARISON, **JOBS
}  # fmt: skip
"""Every table by name; ``by_line_self`` is ``by_line(inclusive=False)``, and
``by_kernel_short_name`` is ``by_kernel(by="short_name")``."""


def with_columns(*tables: str) -> Callable[[_F], _F]:
    """Decorate a function: ``{columns}`` in its docstring becomes the columns of `tables`."""

    def decorate(function: _F) -> _F:
        if function.__doc__ is not None:  # it is None under python -OO
            text = inspect.cleandoc(function.__doc__)
            lead = next(line for line in text.splitlines() if line.strip() == "{columns}")
            indent = lead[: len(lead) - len(lead.lstrip())]
            parts = [_described(TABLES[name], text, of_several=len(tables) > 1) for name in tables]
            described = textwrap.indent("\n\n".join(parts), indent)
            function.__doc__ = text.replace(lead, described)
        return function

    return decorate


def _described(table: TableDoc, docstring: str, *, of_several: bool) -> str:
    """Return the meaning of a row, unless the docstring has it, and the columns."""
    if docstring.startswith(table.rows):
        return _rst_table(table.columns)
    rows = f"`{table.call}`: {table.rows}" if of_several else table.rows
    filled = textwrap.fill(rows.replace("`", "``"), 88, break_on_hyphens=False)
    return f"{filled}\n\n{_rst_table(table.columns)}"


def _rst_table(columns: Sequence[ColumnDoc]) -> str:
    """Return a simple table of reStructuredText."""
    rows = [("column", "dtype", "unit", "meaning")]
    rows += [(c.name, c.dtype, c.unit, c.meaning.replace("`", "``")) for c in columns]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    rule = "  ".join("=" * width for width in (*widths, _MEANING_WIDTH))
    lines = [rule]
    for i, (*cells, meaning) in enumerate(rows):
        lead = "  ".join(text.ljust(width) for text, width in zip(cells, widths, strict=True))
        parts = textwrap.wrap(meaning, _MEANING_WIDTH)
        lines += [f"{lead}  {parts[0]}", *(f"{' ' * len(lead)}  {part}" for part in parts[1:])]
        if i == 0:
            lines.append(rule)
    return "\n".join([*lines, rule])
