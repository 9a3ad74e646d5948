"""The native op stack: ranges and statements, nested, coalesced, suspended, on many threads."""

import ctypes
import mmap
import threading
from pathlib import Path

import numpy as np
import pytest

import epprof_nb
from epprof_nb import _native
from tests.helpers.op_rows import statements, taken
from tests.helpers.threads import run_all


def test_the_top_follows_starts_and_stops(recording):
    name = _native.intern("x")
    assert _native.top() == 0
    x = _native.push(name, 0)
    y = _native.push(name, 0)
    assert _native.top() == y
    assert _native.pop(y)
    assert _native.top() == x
    z = _native.push(name, 0)
    assert _native.top() == z
    assert _native.pop(z)
    assert _native.pop(x)
    assert _native.top() == 0
    assert not _native.pop(x)


def test_an_op_closed_from_below_leaves_what_is_above_open(recording):
    name = _native.intern("x")
    below, above = _native.push(name, 0), _native.push(name, 0)
    assert _native.pop(below)
    assert _native.top() == above
    assert _native.pop(above)
    rows, _ = taken()
    assert rows.loc[above, "parent_op_id"] == below


def test_ranges_nest_with_times_inside_their_parents(recording):
    with epprof_nb.op("outer"), epprof_nb.op("inner", size=3):
        pass
    rows, lost = taken()
    by_name = rows.reset_index().set_index("name")
    assert lost == 0
    assert by_name.loc["inner", "parent_op_id"] == by_name.loc["outer", "op_id"]
    assert by_name.loc["outer", "start_ns"] <= by_name.loc["inner", "start_ns"]
    assert by_name.loc["inner", "end_ns"] <= by_name.loc["outer", "end_ns"]
    assert by_name.loc["inner", "args"] == {"size": 3}
    assert by_name.loc["outer", "args"] is None
    assert (by_name["status"] == "complete").all()


def test_one_op_object_may_be_open_several_times_at_once(recording):
    again = epprof_nb.op("again")
    with again, again, again:
        assert _native.depth() == 3
    rows, _ = taken()
    assert len(rows) == 3
    assert rows["parent_op_id"].isna().sum() == 1


def test_an_exception_closes_its_ops(recording):
    with pytest.raises(KeyError), epprof_nb.op("a"), epprof_nb.op("b"):
        raise KeyError
    assert _native.top() == 0
    rows, _ = taken()
    assert sorted(rows["name"]) == ["a", "b"]


def test_nothing_is_recorded_outside_a_session():
    with epprof_nb.op("nothing", big=list(range(10))):
        assert _native.top() == 0
    _native.set_recording(ops=True, launches=False)
    rows, _ = taken()
    _native.set_recording(ops=False, launches=False)
    assert len(rows) == 0


def test_an_op_left_open_by_one_recording_is_gone_in_the_next(recording):
    _native.push(_native.intern("left"), 0)
    _native.set_recording(ops=False, launches=False)
    _native.set_recording(ops=True, launches=True)
    assert _native.top() == 0


def test_ids_are_unique_over_threads(recording):
    def work():
        for _ in range(2000):
            with epprof_nb.op("t"):
                pass

    run_all(threading.Thread(target=work) for _ in range(8))
    rows, lost = taken()
    assert lost == 0
    assert len(rows) == 16_000
    assert rows.index.is_unique
    assert rows["thread_id"].nunique() == 8


def test_threads_that_ended_give_their_memory_back(recording):
    for _ in range(2):  # threads of tests before: drained, then freed
        taken()
        _native.drain_launches()
    before = _native.counters()["op_chunks"]
    for _ in range(50):
        thread = threading.Thread(target=lambda: epprof_nb.op("t").__enter__().__exit__())
        thread.start()
        thread.join()
    assert _native.counters()["op_chunks"] > before + 40
    rows, _ = taken()
    assert len(rows) == 50
    _native.drain_launches()
    assert _native.counters()["op_chunks"] <= before + 2  # not one more a thread


def test_shown_and_lost_ops_add_up_when_the_log_is_full(recording):
    taken()
    in_use = _native.counters()["op_chunks"]
    _native.set_limits(op_chunks=in_use + 2, launch_chunks=8)
    for _ in range(5000):
        with epprof_nb.op("many"):
            pass
    rows, lost = taken()
    assert lost > 0
    assert len(rows) + lost == 5000
    assert _native.counters()["op_chunks"] <= in_use + 2


def test_a_stack_deeper_than_its_bound_counts_to_the_deepest(recording):
    name = _native.intern("deep")
    ids = [_native.push(name, 0) for _ in range(9000)]
    deepest = _native.top()
    assert deepest == ids[8191]
    for op_id in reversed(ids):
        assert _native.pop(op_id)
    assert _native.top() == 0


def test_suspended_ops_are_on_no_stack_and_their_time_is_told(recording):
    def numbers():
        with epprof_nb.op("generator"):
            yield 1
            yield 2

    with epprof_nb.op("consumer"):
        for _ in numbers():
            inside = _native.top()
            for _ in range(20_000):
                pass
    rows, _ = taken()
    ids = rows.reset_index().set_index("name")
    assert inside == ids.loc["consumer", "op_id"]
    generator = ids.loc["generator"]
    assert generator["suspended_ns"] > 0
    assert (
        generator["duration_ns"] + generator["suspended_ns"]
        == generator["end_ns"] - generator["start_ns"]
    )


def test_args_that_json_cannot_say_are_kept_as_text(recording):
    class Odd:
        def __repr__(self):
            raise RuntimeError

    cycle = []
    cycle.append(cycle)
    with epprof_nb.op("a", shape=np.int64(3), odd=Odd(), pair=(1, 2)), epprof_nb.op("b", c=cycle):
        pass
    rows, _ = taken()
    args = rows.set_index("name")["args"]
    assert args["a"]["shape"] == 3
    assert "Odd" in args["a"]["odd"]
    assert args["a"]["pair"] == [1, 2]
    assert isinstance(args["b"]["c"], str)


def test_odd_names_are_kept_as_they_are(recording):
    names = ["", "a\nb", "<script>", "\ud800", "名前", "x" * 10_000]
    for name in names:
        with epprof_nb.op(name):
            pass
    rows, _ = taken()
    assert rows["name"].tolist() == [
        "(unnamed)",
        "a\nb",
        "<script>",
        "\\ud800",
        "名前",
        "x" * 10_000,
    ]


@pytest.mark.parametrize("arguments", [(), ("a", "b"), (3,)])
def test_an_op_without_exactly_one_name_says_so(arguments):
    with pytest.raises(TypeError, match="name"):
        epprof_nb.op(*arguments)


def test_ops_nested_too_deep_for_a_row_are_lost_and_counted(recording):
    ops = [epprof_nb.op(f"level {i % 10}") for i in range(20_000)]
    for op in ops:
        op.__enter__()
    for op in reversed(ops):
        op.__exit__()
    with epprof_nb.op("after"):
        pass
    rows, lost = taken()
    assert len(rows) + lost == 20_001
    assert len(rows) == 8192 + 1
    assert rows.loc[rows["name"] == "after", "parent_op_id"].isna().all()
    assert (rows["status"] == "complete").all()


def test_an_op_reentered_too_deep_ends_itself_and_not_an_outer_one(recording):
    op = epprof_nb.op("recursive")
    for _ in range(9000):
        op.__enter__()
    for _ in range(808):
        op.__exit__()
    assert _native.depth() == 8192
    rows, lost = taken()
    assert (rows["status"] == "open").all()
    assert lost == 808
    for _ in range(8192):
        op.__exit__()
    assert _native.depth() == 0


def test_memory_of_ops_that_never_end_is_bounded(recording):
    op = epprof_nb.op("leak")
    for _ in range((1 << 20) + 5):
        op.__enter__()
    assert _native.depth() == 1 << 20
    for _ in range(6):
        op.__exit__()
    assert _native.depth() == (1 << 20) - 1


def test_ops_drained_during_a_session_count_against_its_bound(recording):
    taken()
    _native.set_limits(op_chunks=_native.counters()["op_chunks"] + 4)
    shown = lost = 0
    for _ in range(10):
        for _ in range(1000):
            with epprof_nb.op("many"):
                pass
        rows, lost_now = taken()
        shown, lost = shown + len(rows), lost + lost_now
    assert shown + lost == 10_000
    assert shown < 3000


def test_the_memory_of_a_session_is_given_back_at_its_end():
    def resident_bytes():
        # Without what the C library keeps of the memory that was freed, by earlier tests, too.
        ctypes.CDLL(None).malloc_trim(0)
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    first = statements((-1, "def"), (-1, "body"))
    name = _native.intern("parent")
    for count in (100, 400_000):  # the first loads what a session needs
        before = resident_bytes()
        _native.set_recording(ops=True, launches=True)
        for _ in range(count):
            op = _native.push(name, 0)
            _native.line(first + 1)
            _native.pop(op)
        held = resident_bytes() - before
        _native.drain_ops(_native.now_ns(), open_too=True)
        _native.set_recording(ops=False, launches=False)
        kept = resident_bytes() - before
    # Less than all of it where the process holds free memory of earlier tests.
    assert held > 10_000_000
    assert kept < max(held / 4, 10_000_000)
