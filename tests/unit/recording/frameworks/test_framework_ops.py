"""Ops of frameworks on the op stack: ended by their callers, and by other threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from epprof_nb import _native
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import OPS
from epprof_nb.data.table import Table
from epprof_nb.recording.frameworks import framework_ops
from epprof_nb.recording.frameworks.framework_ops import (
    CALL,
    RANGE,
    kind_id,
    new_kind,
)
from epprof_nb.recording.session.framework_columns import (
    add_columns_of_kinds,
    add_framework_columns,
)
from epprof_nb.recording.statements.markers import install_markers
from tests.helpers.marked_cells import marked
from tests.helpers.recorded_ops import drained, recording, stack


def run(source, **variables):
    """Run marked code."""
    install_markers(variables)
    exec(compile(marked(source), "<cell>", "exec"), variables)


def push(name, category=CALL):
    return _native.push(_native.intern(name), category, 0)


def on_another_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_a_call_left_open_ends_with_the_call_around_it():
    with recording():
        outer = push("outer")
        push("inner")
        _native.pop(outer)
        assert stack() is None
        assert {op.name: op.flags for op in drained()} == {"outer": 0, "inner": 0}


def test_a_range_left_open_outlives_the_call_around_it():
    with recording():
        outer = push("outer")
        push("inner", RANGE)
        _native.pop(outer)
        assert stack() == "inner"


def test_the_next_statement_ends_calls_but_no_ranges():
    def leave_open(category):
        push("left open", category)

    for category, expected in ((CALL, None), (RANGE, "left open")):
        with recording():
            run("leave(category)\nafter = 1\n", leave=leave_open, category=category)
            (last,) = [op for op in drained() if op.name == "after = 1"]
            assert last.parent == expected


def test_the_end_of_a_function_ends_its_calls():
    with recording():
        run("def f():\n    leave('left open')\nf()\nafter = 1\n", leave=push)
        (last,) = [op for op in drained() if op.name == "after = 1"]
        assert last.parent is None


def test_a_worker_op_has_the_given_parent_unless_one_is_open():
    found = {}

    def work():
        found["lone"] = _native.push_worker(_native.intern("lone"), CALL, 0, outer)
        found["inner"] = _native.push_worker(_native.intern("inner"), CALL, 0, outer)
        _native.pop(found["inner"])
        _native.pop(found["lone"])

    with recording():
        outer = push("outer")
        on_another_thread(work)
        _native.pop(outer)
        parents = {op.name: op.parent for op in drained()}
    assert parents == {"outer": None, "lone": "outer", "inner": "lone"}


def test_any_thread_can_end_an_op():
    opened, ended = threading.Event(), threading.Event()
    ids, tops = [], []

    def work():
        ids.extend([push("below"), push("left open")])
        opened.set()
        ended.wait()
        tops.append(_native.top())
        _native.pop(ids[0])

    with recording():
        thread = threading.Thread(target=work)
        thread.start()
        opened.wait()
        assert _native.pop_of_any_thread(ids[1])
        assert not _native.pop_of_any_thread(ids[1])
        ended.set()
        thread.join()
        assert tops == ids[:1]
        assert [(op.name, op.flags) for op in drained()] == [("below", 0), ("left open", 0)]


def test_ops_end_from_elsewhere_while_their_thread_opens_others():
    """Both threads write to the log of one of them."""
    ids = []

    def work():
        for _ in range(3000):
            ids.append(push("left open", RANGE))
            _native.pop(push("own", RANGE))

    with recording():
        thread = threading.Thread(target=work)
        thread.start()
        ended = 0
        while ended < 3000:
            if ended < len(ids):
                assert _native.pop_of_any_thread(ids[ended])
                ended += 1
        thread.join()
        names = [op.name for op in drained() if not op.flags]
    assert (names.count("left open"), names.count("own")) == (3000, 3000)


def test_without_a_recording_nothing_is_opened_or_ended():
    assert push("none") == 0
    assert _native.push_worker(_native.intern("none"), CALL, 0, 1) == 0
    assert not _native.pop_of_any_thread(1)


def test_push_checks_its_arguments():
    for arguments in ((), (1,), (1, 2, 3, 4)):
        with pytest.raises(TypeError):
            _native.push(*arguments)
    with pytest.raises(TypeError):
        _native.push("name", 0)


def filled(rows):
    """The columns of ops, given as pairs of a category and a payload id."""
    category, payload = np.array(rows, np.int64).reshape(-1, 2).T
    table = Table(
        OPS,
        {
            "op_id": np.arange(len(rows)) + 1,
            "op_type": CategoryColumn.of(["line"] * len(rows)),
            "source": CategoryColumn.of(["cell"] * len(rows)),
        },
    )
    table = add_columns_of_kinds(table, category, payload)
    made = add_framework_columns(table, category, payload)
    return [made.names(name).to_list() for name in ("op_type", "source", "args")]


def test_ops_have_the_columns_of_their_kind():
    layer, data = kind_id("module", "torch", **{"class": "Linear"}), kind_id("data", "torch")
    assert kind_id("module", "torch", **{"class": "Linear"}) == layer
    compiled, kind = new_kind("compile", "torch")
    kind.set_args({"line": 3})
    assert filled([(1, layer), (CALL, layer), (RANGE, data), (CALL, compiled)]) == [
        ["line", "module", "data", "compile"],
        ["cell", "torch", "torch", "torch"],
        [None, '{"class": "Linear"}', None, '{"line": 3}'],
    ]
    assert filled([]) == [[], [], []]


def test_kinds_are_bounded(monkeypatch):
    monkeypatch.setattr(framework_ops, "_MAX_KINDS", len(framework_ops._ids) + 2)
    ids = [kind_id("range", "bounded", number=number) for number in range(10)]
    assert len(set(ids)) == 3
    assert filled([(RANGE, ids[9])])[2] == [None]
