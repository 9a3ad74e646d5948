"""Statements on the op stack: their nesting, shared rows and bounds."""

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.recording.session.ops_table import ops_table
from epprof_nb.recording.session.recording import Batch
from epprof_nb.recording.stacks import availability
from tests.helpers.op_rows import statements, taken


def test_a_statement_ends_where_the_next_of_its_level_begins(recording):
    first = statements((-1, "a"), (-1, "for"), (1, "body"), (-1, "z"))
    for key in (0, 1, 2, 2, 3):
        _native.line(first + key)
    rows, _ = taken()
    assert rows["name"].tolist() == ["a", "for", "body", "body", "z"]
    loop = rows.index[rows["name"] == "for"][0]
    assert (rows.loc[rows["name"] == "body", "parent_op_id"] == loop).all()
    assert rows["parent_op_id"].isna().sum() == 3
    assert rows.iloc[-1]["status"] == "open"
    assert rows.iloc[0]["end_ns"] == rows.iloc[1]["start_ns"]


def test_a_range_opened_in_a_statement_stays_open_over_the_next_statements(recording):
    first = statements((-1, "with"), (0, "one"), (0, "two"), (-1, "after"))
    _native.line(first)
    with epprof_nb.op("range"):
        _native.line(first + 1)
        _native.line(first + 2)
        _native.back(first)
    _native.line(first + 3)
    rows, _ = taken()
    ids = rows.reset_index().set_index("name")["op_id"]
    parents = rows.reset_index().set_index("name")["parent_op_id"]
    assert parents["range"] == ids["with"]
    assert parents["one"] == parents["two"] == ids["range"]
    assert rows.loc[ids["two"], "end_ns"] <= rows.loc[ids["range"], "end_ns"]
    assert rows.isna()["parent_op_id"].sum() == 2


def test_a_functions_scope_closes_with_all_that_is_open_in_it(recording):
    first = statements((-1, "call"), (-1, "inside"), (1, "deeper"))
    _native.line(first)
    with _native.body(first):
        _native.line(first + 1)
        _native.line(first + 2)
    assert _native.depth() == 1
    rows, _ = taken()
    ids = rows.reset_index().set_index("name")["op_id"]
    assert rows.loc[ids["inside"], "parent_op_id"] == ids["call"]


def test_recursion_nests_the_same_statement_under_itself(recording):
    first = statements((-1, "def"), (-1, "body"))

    def recurse(n):
        with _native.body(first):
            _native.line(first + 1)
            if n:
                recurse(n - 1)

    recurse(4)
    rows, _ = taken()
    assert len(rows) == 5
    assert rows["parent_op_id"].isna().sum() == 1
    assert (rows["parent_op_id"].dropna().astype(int) == rows.index[:-1]).all()


def test_executions_beyond_the_stated_number_share_a_row_with_exact_totals(recording):
    _native.set_limits(statement_repeats=10)
    first = statements((-1, "for"), (0, "body"), (-1, "end"))
    _native.line(first)
    for _ in range(500):
        _native.line(first + 1)
    _native.line(first + 2)
    rows, _ = taken()
    body = rows[rows["name"] == "body"]
    assert len(body) == 11
    assert body["count"].sum() == 500
    assert body["count"].max() == 490
    loop = rows[rows["name"] == "for"].iloc[0]
    # Statements follow each other without gaps, and the last one ends with the loop.
    assert body["end_ns"].max() == loop["end_ns"]
    assert body["duration_ns"].sum() == loop["end_ns"] - body["start_ns"].min()


def test_a_coalesced_row_drained_in_parts_is_one_row_again(recording):
    _native.set_limits(statement_repeats=5)
    first = statements((-1, "for"), (0, "body"))
    _native.line(first)
    parts = []
    for _ in range(2):
        for _ in range(50):
            _native.line(first + 1)
        raw = _native.drain_ops(_native.now_ns(), open_too=True)
        raw["suspended_ns"] = np.full(len(raw["flags"]) // 2, 7, np.int64).tobytes()
        parts.append(Batch(raw, {}, [], 0))
    rows = ops_table(parts)[0].to_frame()
    body = rows[rows["name"] == "body"]
    assert rows.index.is_unique
    assert body["count"].sum() == 100
    assert body["count"].max() == 95
    assert body["suspended_ns"].max() == 3 * 7  # two parts, and the execution that is open


def test_a_drained_part_has_no_time_of_the_part_before(recording):
    _native.set_limits(statement_repeats=2)
    first = statements((-1, "def"), (-1, "body"))

    def number():
        with _native.frame_body(first):
            _native.line(first + 1)
            yield 1

    def suspended():
        return np.frombuffer(
            _native.drain_ops(_native.now_ns(), open_too=False)["suspended_ns"], np.int64
        )

    for _ in range(9):
        list(number())
    assert suspended().all()
    for _ in range(9):
        with _native.body(first):
            _native.line(first + 1)
    assert suspended().tolist() == [0]


def test_the_number_of_statement_rows_is_bounded_under_recursion(recording):
    _native.set_limits(statement_rows=200)
    first = statements((-1, "def"), (-1, "body"))

    def fib(n):
        with _native.body(first):
            _native.line(first + 1)
            return 1 if n < 2 else fib(n - 1) + fib(n - 2)

    calls = 2 * fib(17) - 1
    raw = _native.drain_ops(_native.now_ns(), open_too=True)
    rows = ops_table([Batch(raw, {}, [], 0)])[0].to_frame()
    assert rows["count"].sum() + raw["unmarked"] == calls
    assert rows["count"].sum() >= 1000
    assert raw["unmarked"] > 0
    assert len(rows) < 200 + 17 * 200
    assert _native.depth() == 0


def test_only_recursion_has_a_budget_and_statements_keep_their_parents(recording):
    first = statements((-1, "def"), (-1, "body"), (-1, "helper"), (-1, "inside"))

    def helped():
        with _native.body(first + 2):
            _native.line(first + 3)

    def recurse(n):
        with _native.body(first):
            _native.line(first + 1)
            helped()
            if n:
                recurse(n - 1)

    for _ in range(2000):
        recurse(0)
    assert _native.drain_ops(_native.now_ns(), open_too=True)["unmarked"] == 0
    recurse(900)
    assert _native.depth() == 0
    rows, _ = taken()
    deep = rows[rows["name"] == "inside"]
    assert set(deep["parent_op_id"]) <= set(rows.index[rows["name"] == "body"])


@pytest.mark.skipif(availability.why_unavailable() is not None, reason="no stacks can be read")
def test_recursive_calls_have_the_python_stack_of_the_call_around_them(recording):
    """Otherwise a walk over all frames at each depth would make the cost quadratic."""
    first = statements((-1, "def"), (-1, "body"))

    def recurse(n):
        with _native.body(first):
            _native.line(first + 1)
            return n and recurse(n - 1)

    _native.begin_stacks()
    _native.start_stacks()
    recurse(300)
    stacks = _native.drain_op_stacks()["op_id"]
    _native.stop_stacks()
    rows, _ = taken()
    assert len(rows) == 301
    assert np.frombuffer(stacks, np.int64).tolist() == [rows.index[0]]


def test_statements_too_deep_for_a_row_are_lost_and_counted(recording):
    first = statements((-1, "def"), (-1, "body"))
    for _ in range(8192):
        _native.push(_native.intern("x"), 0)
    for _ in range(3):
        with _native.body(first):
            _native.line(first + 1)
    assert _native.depth() == 8192
    assert taken()[1] == 3


def test_statements_under_very_many_parents_are_bounded_and_counted(recording):
    _native.set_limits(statement_rows=10, statement_pairs=100)
    first = statements((-1, "def"), (-1, "body"))
    name = _native.intern("parent")
    for _ in range(500):
        op = _native.push(name, 0)
        with _native.body(first):
            _native.line(first + 1)
        _native.pop(op)
    rows, lost = taken()
    assert lost == 400
    assert (rows["name"] == "body").sum() == 100
    assert (rows["name"] == "parent").sum() == 500
