"""Findings on memory that grows from step to step."""

import gc
import importlib
import sys
import time
from collections import deque

import pytest

import epprof_nb
from epprof_nb import host
from epprof_nb.data.schema import MEMORY_BLOCKS
from tests.helpers import tiny

MB = 1_000_000
TURN = 1000


def fill(array):
    array[:] = 1


def growing(prof):
    found = prof.insights()
    return found[found["kind"] == "growing memory"].reset_index(drop=True)


def loop(n, blocks, *, kernels=True, allocates=False):
    """A loop of a cell with two lines a turn, the first of which launches a kernel."""
    ops = [tiny.line(1, 1, 0, n * TURN)]
    calls, activities = [], []
    for i in range(n):
        t = i * TURN
        ops.append(tiny.line(2 + 2 * i, 2, t, t + 500, 1))
        ops.append(tiny.line(3 + 2 * i, 3, t + 500, t + 900, 1))
        calls.append(tiny.call(t + 10, t + 20, correlation_id=i + 1, op_id=2 + 2 * i))
        kind = tiny.kernel if kernels else lambda *a, **k: tiny.activity("memcpy", *a, **k)
        if allocates:
            calls.append(tiny.call(t + 50, t + 450, name="cuMemAlloc_v2", op_id=2 + 2 * i))
        activities.append(kind(t + 30, t + 40, 2 + 2 * i, correlation_id=i + 1))
    prof = tiny.profile(
        ops, activities, calls, info={"wall_ns": n * TURN, "cell": "In[1]", "detail": "memory"}
    )
    prof.tables["memory_blocks"] = tiny.table(MEMORY_BLOCKS, blocks)
    return prof


def block(size, turn, until=None, *, line=2, **more):
    """A block that a line allocates in a turn; it is in use until the end of another one."""
    op = 2 + 2 * turn + (line == 3)
    begin = turn * TURN + (550 if line == 3 else 50)
    freed = None if until is None else until * TURN + 950
    row = {"pool": "torch", "device_id": 0, "bytes": size, "requested_bytes": size, "address": 0}
    return row | {"allocated_ns": begin, "freed_ns": freed, "op_id": op} | more


def test_the_line_that_allocates_what_stays():
    blocks = [block(MB, i, line=3) for i in range(20)]
    blocks += [block(9 * MB, i, i) for i in range(20)]  # released in its turn
    blocks.append(block(9 * MB, 0, line=3, allocated_ns=-10))  # from before the loop
    blocks += [block(5 * MB, i, i + 1) for i in range(19)]  # replaced in the next one
    (row,) = growing(loop(20, blocks)).itertuples()
    assert row.text == (
        "Device memory grows by 1.00 MB from iteration to iteration, to 20.0 MB more after 20: "
        "line 3 allocates all of it, and it is not released."
    )
    assert (row.cell, row.line, row.gain_ns) == ("In[1]", 3, 0)
    assert "loss.item()" in row.remedy
    prof = loop(20, blocks)
    evidence = prof.evidence(int(row.rank))
    assert evidence["bytes"].tolist() == [MB] * 20


def test_allocations_of_the_driver_for_what_stays_have_its_remedy():
    for blocks, remedy in (
        ([block(MB, i) for i in range(20)], "Release the memory that grows"),
        ([], "Keep the memory"),
    ):
        found = loop(20, blocks, allocates=True).insights().set_index("kind")
        assert found.loc["driver allocation", "gain_ns"] > 0
        assert remedy in found.loc["driver allocation", "remedy"]
        assert ("growing memory" in found.index) == bool(blocks)


def test_the_main_line_of_several():
    blocks = [block(3 * MB, i) for i in range(20)] + [block(MB, i, line=3) for i in range(20)]
    (row,) = growing(loop(20, blocks)).itertuples()
    assert "grows by 4.00 MB" in row.text
    assert "line 2 allocates 75 % of it, 1 other line the rest" in row.text


def test_what_is_kept_only_until_the_end_of_the_loop():
    blocks = [block(MB, i, 20) for i in range(20)]
    assert len(growing(loop(20, blocks))) == 1


@pytest.mark.parametrize(
    "blocks",
    [
        [block(MB, i) for i in range(6)],  # a cache that is full
        [block(5 * MB, 0)],
        [block(512, i) for i in range(20)],  # a list of losses
        [block(MB, i, i + 7) for i in range(20)],  # a buffer of the last ones
        [block((1 + i) * MB, i, i + 1) for i in range(20)],  # longer and longer batches
        [block(MB, i, category="parameter") for i in range(20)],
        [block(MB, 0, allocated_ns=None, op_id=None) for _ in range(20)],
        [block(MB, i) for i in (0, 1, 2, 3, 5, 8, 13)],  # a cache that fills by chance
    ],
)
def test_what_does_not_grow(blocks):
    assert not len(growing(loop(20, blocks)))


def test_loading_data_and_few_turns_are_no_growth():
    blocks = [block(MB, i) for i in range(20)]
    assert not len(growing(loop(20, blocks, kernels=False)))
    assert not len(growing(loop(9, blocks[:9])))


def test_a_leak_of_a_step_in_ten():
    blocks = [block(4 * MB, i) for i in range(0, 60, 10)]
    assert len(growing(loop(60, blocks))) == 1


def train(keep, steps):
    for step in range(steps):
        batch = host.empty(500_000)
        host.launch(fill, batch)
        output = host.empty(250_000)  # the line
        host.launch(fill, output)
        keep(step, output)
        host.synchronize()


LINE = train.__code__.co_firstlineno + 4


def test_a_loop_of_a_function_on_the_host_device(tmp_path):
    kept = {}
    with epprof_nb.profile(detail="memory") as prof:
        train(kept.__setitem__, 20)
    prof.save(tmp_path / "leak.epprof")
    for shown in (prof, epprof_nb.load(tmp_path / "leak.epprof")):
        (row,) = growing(shown).itertuples()
        assert row.line == LINE
        assert "1.00 MB" in row.text


def used(array):
    host.launch(fill, array)
    return array


def collect(steps, keeps):
    return [
        array
        for step in range(steps)
        if used(host.empty(10)) is not None
        for array in [used(host.empty(250_000))]
        if keeps(step)
    ]


def make(n):
    return host.empty(n)


def two_of_a_helper(steps):
    kept = []
    for _ in range(steps):
        kept += [make(250_000), make(250_000)]; host.launch(fill, kept[-1]); host.synchronize()  # noqa: E702 # fmt: skip
    return kept


def two_sizes_at_a_line(steps):
    kept = []
    for _ in range(steps):
        a = host.empty(250_000); b = host.empty(125_000); host.launch(fill, a); kept += [a, b]  # noqa: E702 # fmt: skip
    return kept


def every_other(steps):
    kept = []
    for step in range(steps):
        made = make(250_000)
        host.launch(fill, made)
        if step % 2 == 0:
            kept.append(make(250_000))
        host.synchronize()
    return kept


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (two_of_a_helper, "2.00 MB from iteration to iteration, to 40.0 MB more after 20:"),
        (two_sizes_at_a_line, "1.50 MB from iteration to iteration, to 30.0 MB more after 20:"),
        (every_other, "526 kB from iteration to iteration, to 10.0 MB more after 19:"),
    ],
)
def test_several_allocations_of_a_turn(run, says):
    with epprof_nb.profile(detail="memory") as prof:
        kept = [run(20)]
    (row,) = growing(prof).itertuples()
    assert f"memory grows by {says}" in row.text
    del kept


def as_dict(steps):
    return {step: used(host.empty(250_000)) for step in range(steps)}


def test_a_comprehension_names_its_line():
    with epprof_nb.profile(detail="memory") as prof:
        kept = [collect(20, lambda _: True)]
    (row,) = growing(prof).itertuples()
    assert row.line == collect.__code__.co_firstlineno + 1
    assert "grows by 1.00 MB from iteration to iteration, to 20.0 MB more after 20" in row.text
    with epprof_nb.profile(detail="memory") as prof:
        kept.append(as_dict(20))
    (row,) = growing(prof).itertuples()
    assert row.line == as_dict.__code__.co_firstlineno + 1


def test_the_line_that_calls_a_function_that_allocates(monkeypatch):
    # A worker of pytest-xdist is `python -c`, whose own line calls all.
    monkeypatch.setattr(sys, "argv", ["train.py"])
    kept = []
    with epprof_nb.profile(detail="memory") as prof:
        for step in range(30):
            if step % 5:
                kept += as_dict(1).values()
            else:
                kept += as_dict(2).values()
    (row,) = growing(prof).itertuples()
    assert row.line == as_dict.__code__.co_firstlineno + 1
    assert row.text.endswith(
        ", and it is not released. It was called in line "
        f"{test_the_line_that_calls_a_function_that_allocates.__code__.co_firstlineno + 7} of "
        "test_growing_memory.py (`kept += as_dict(1).values()`), for 67 % of it."
    )


def test_the_line_between_a_helper_and_the_cell_is_named(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py"])
    with epprof_nb.profile(detail="memory") as prof:
        kept = every_other(20)
    (row,) = growing(prof).itertuples()
    between = every_other.__code__.co_firstlineno + 6
    caller = test_the_line_between_a_helper_and_the_cell_is_named.__code__.co_firstlineno + 3
    assert f"It was called in line {between} of `every_other` (test_growing_memory.py: " in row.text
    assert f", from line {caller} of test_growing_memory.py (" in row.text
    del kept


def one_line(kept, steps):
    for _ in range(steps):
        kept.append(used(host.empty(250_000)))


LIBRARY = """
from epprof_nb import host

def fill(array):
    array[:] = 1

class Net:
    def __init__(self):
        self.weights = []
        for _ in range(30):
            weight = host.empty(250_000)
            host.launch(fill, weight)
            self.weights.append(weight)
"""


def test_a_loop_that_launches_from_one_line():
    kept = []
    with epprof_nb.profile(detail="memory") as prof:
        one_line(kept, 20)
    (row,) = growing(prof).itertuples()
    assert row.line == one_line.__code__.co_firstlineno + 2


def test_a_loop_of_a_library_is_none_of_the_line_that_calls_it(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "library_of_nets.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(folder)
    library = importlib.import_module("library_of_nets")
    with epprof_nb.profile(detail="memory") as prof:
        nets = [library.Net() for _ in range(2)]
    assert not len(growing(prof))
    assert prof.memory_at("end")["bytes"].sum() >= 60 * MB
    del nets


@pytest.mark.parametrize("keeps", [lambda _: False, lambda step: step < 6, lambda step: step == 9])
def test_a_comprehension_that_keeps_little_is_no_growth(keeps):
    with epprof_nb.profile(detail="memory") as prof:
        kept = collect(30, keeps)
    assert not len(growing(prof))
    del kept


def test_memory_that_only_waits_for_launched_work_is_no_growth():
    with epprof_nb.profile(detail="memory") as prof:
        for _ in range(20):
            batch = host.empty(250_000)
            host.launch(lambda _: time.sleep(0.002), batch)
        host.synchronize()
    assert not len(growing(prof))


def test_without_a_history_or_with_a_bounded_buffer():
    kept = deque(maxlen=5)
    with epprof_nb.profile(detail="memory") as bounded:
        train(lambda _, output: kept.append(output), 20)
    every = []
    with epprof_nb.profile() as without:
        train(lambda _, output: every.append(output), 20)
    gc.collect()
    assert not len(growing(bounded))
    if not len(without.tables["memory_blocks"]):
        assert not len(growing(without))


def test_blocks_without_a_byte_that_stay_are_no_growth():
    assert growing(loop(2, [block(0, i, line=3) for i in range(2)])).empty
