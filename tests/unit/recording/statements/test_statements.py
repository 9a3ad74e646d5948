"""Statements as rows of the table: their texts, lines and cells."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from epprof_nb import _native
from epprof_nb.recording.statements.instrument_cell import instrument
from epprof_nb.recording.statements.statement_registry import (
    TEXT_LIMIT,
    Cell,
    _statements,
    statement_text,
)
from epprof_nb.recording.statements.statements_table import statements_table


def test_table_and_texts():
    source = "x = 1\nif x:\n    y = f(\n        x,\n        2)\n\ndef f(a):\n    return a\n"
    cell = Cell("", source)
    tree = ast.parse(source)
    marks = [
        node.value.args[0].value
        for node in ast.walk(ast.Module(instrument(tree.body, cell), []))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id == "__epprof_line__"
    ]
    cell.name = "In[7]"  # set when it starts to run
    keys = np.array([*sorted(marks), 2**31], np.uint32)
    table = statements_table(keys)
    assert table.cell.to_list() == ["In[7]"] * 5 + [None]
    assert table.line.tolist() == [1, 2, 3, 7, 8, -1]
    assert table.end_line.tolist() == [1, 5, 5, 8, 8, -1]
    assert [_statements[key].text for key in keys[:-1].tolist()] == [
        "x = 1", "if x:", "y = f( x, 2)", "def f(a):", "return a"
    ]  # fmt: skip
    assert len(statements_table(np.array([], np.uint32)).line) == 0


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("ü = 'é'; ß = 1", ["ü = 'é'", "ß = 1"]),
        ("x = " + "+".join(["1"] * 100), None),
        ("x = [\n" + "1,\n" * 50 + "]", ["x = [ … ]"]),
        ("async def f(): return 1", ["async def f(): return 1", "return 1"]),
    ],
)
def test_text_of_a_statement(source, text):
    cell = Cell("In[1]", source)
    before = _native.add_statements(b"", b"")
    instrument(ast.parse(source).body, cell)
    after = _native.add_statements(b"", b"")
    texts = [_statements[key].text for key in range(before, after)]
    assert all(len(t) <= TEXT_LIMIT for t in texts)
    if text is not None:
        assert texts == text


def test_long_texts_are_elided_in_the_middle():
    def text(source):
        return statement_text([source], line=1, column=0, end_line=1, end_column=None)

    assert text("short") == "short"
    long = text("a" * 70 + "b" * 70)
    assert len(long) == TEXT_LIMIT
    assert (long[0], long[-1]) == ("a", "b")


def test_first_line_shifts_lines():
    source = "%%time\n%%gpuprofile p\nx = 1"
    tree = ast.parse("begin()\nx = 1")
    before = _native.add_statements(b"", b"")
    instrument(tree.body[1:], Cell("In[1]", source), first_line=1)
    statement = _statements[before]
    assert (statement.line, statement.text) == (3, "x = 1")


def test_a_statement_of_many_long_lines_is_cut_once():
    lines = ["values = (" + "a + " * 60, *["b +"] * 9, "c)"]
    text = statement_text(lines, line=1, column=0, end_line=11, end_column=None)
    assert text.startswith("values = (a + a")
    assert text.endswith("… c)")
    assert text.count("…") == 1
    assert len(text) <= TEXT_LIMIT
