"""Breakdowns: known answers on tiny profiles, and sums that always add up."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import activity, call, kernel, line, op, profile

from epprof_nb.analysis import lookup, optree
from epprof_nb.analysis.attribute import device_work
from epprof_nb.analysis.breakdown import NO_LINE, NO_OP, by_line, by_op
from epprof_nb.analysis.kernels import by_kernel
from epprof_nb.analysis.lookup import RowIndex
from epprof_nb.analysis.optree import OpTree
from epprof_nb.testing import synthetic_profile


def rows(frame, key="name"):
    """The frame as {key: row}; each key occurs once."""
    records = frame.to_dict("records")
    found = {record[key]: record for record in records}
    assert len(found) == len(records)
    return found


def nested():
    """A cell with a loop of two rounds; in it a statement with a range."""
    return profile(
        ops=[
            op(1, "In[1]", 0, 1000, op_type="cell"),
            line(2, 1, 0, 900, 1),
            line(3, 2, 10, 110, 2),
            op(4, "attention", 20, 80, 3),
            line(5, 2, 210, 310, 2),
            op(6, "attention", 220, 280, 5),
        ],
        activities=[
            kernel(30, 60, 4, correlation_id=1),
            kernel(240, 280, 6, correlation_id=2),
            activity("memcpy", 300, 310, 5, bytes=1024),
            activity("memset", 320, 325, 2, bytes=64),
            activity("synchronization", 0, 900, 2),
            kernel(400, 407),
        ],
        api_calls=[call(20, 22, correlation_id=1), call(220, 222, correlation_id=2)],
        sources={"In[1]": "for batch in batches:\n    y = model(batch)\n"},
    )


def test_by_op_counts_an_op_and_all_below_it():
    found = rows(by_op(nested()))
    assert found["attention"]["device_ns"] == found["attention"]["self_device_ns"] == 70
    assert found["line 2"]["device_ns"] == 80
    assert found["line 2"]["self_device_ns"] == 10
    assert found["line 1"]["device_ns"] == found["In[1]"]["device_ns"] == 85
    assert found["line 1"]["self_device_ns"] == 5
    assert found["In[1]"]["self_device_ns"] == 0
    assert found["line 2"]["count"] == found["attention"]["count"] == 2
    assert found["line 2"]["bytes"] == 1024
    assert found["line 1"]["bytes"] == 1088
    counts = ("kernels", "memcpys", "memsets")
    assert [found["line 1"][name] for name in counts] == [2, 1, 1]
    assert [found["attention"][name] for name in counts] == [2, 0, 0]


def test_by_op_keeps_work_without_an_op_in_a_last_row():
    frame = by_op(nested())
    assert frame["name"].iloc[-1] == NO_OP
    last = frame.iloc[-1]
    assert (last["device_ns"], last["self_device_ns"], last["kernels"]) == (7, 7, 1)
    assert last["count"] == last["host_ns"] == 0
    assert frame["self_device_ns"].sum() == 92
    assert pd.isna(last["op_type"])
    assert last["share"] == pytest.approx(7 / 92)


def test_by_op_measures_host_time_once():
    found = rows(by_op(nested()))
    assert found["line 2"]["host_ns"] == 200
    assert found["line 2"]["self_host_ns"] == 200 - 120
    assert found["line 1"]["host_ns"] == 900
    assert found["line 1"]["self_host_ns"] == 700
    assert found["attention"]["host_ns"] == found["attention"]["self_host_ns"] == 120


def test_by_op_averages_the_delay_of_launches():
    found = rows(by_op(nested()))
    assert found["attention"]["launch_delay_ns"] == (10 + 20) // 2
    assert pd.isna(found[NO_OP]["launch_delay_ns"])


def test_a_kernel_that_seems_to_start_before_its_launch_has_no_delay():
    early = profile(
        [op(1, "a", 0, 10)], [kernel(3, 9, 1, correlation_id=5)], [call(4, 5, correlation_id=5)]
    )
    assert rows(by_op(early))["a"]["launch_delay_ns"] == 0


def test_by_op_is_sorted_by_device_time_then_host_time():
    assert by_op(nested())["name"].tolist() == ["In[1]", "line 1", "line 2", "attention", NO_OP]


def test_an_op_that_nests_in_itself_counts_once():
    recursive = profile(
        ops=[op(1, "f", 0, 100), op(2, "g", 10, 90, 1), op(3, "f", 20, 80, 2)],
        activities=[kernel(0, 5, 1), kernel(5, 15, 3)],
    )
    found = rows(by_op(recursive))
    assert found["f"]["device_ns"] == found["f"]["self_device_ns"] == 15
    assert found["f"]["host_ns"] == 100
    assert found["f"]["self_host_ns"] == 20 + 60
    assert found["f"]["kernels"] == 2
    assert found["f"]["count"] == 2
    assert found["g"]["device_ns"] == 10


def test_ops_of_one_name_below_different_parents_add_up():
    twice = profile(
        ops=[op(1, "a", 0, 10), op(2, "f", 1, 9, 1), op(3, "b", 10, 20), op(4, "f", 11, 19, 3)],
        activities=[kernel(0, 5, 2), kernel(5, 7, 4)],
    )
    found = rows(by_op(twice))
    assert found["f"]["device_ns"] == 7
    assert found["f"]["host_ns"] == 16


def test_equal_statements_of_different_lines_are_different_rows():
    frame = by_op(
        profile(
            [op(1, "f()", 0, 1, cell="In[1]", line=1), op(2, "f()", 1, 2, cell="In[1]", line=4)]
        )
    )
    assert sorted(frame["line"]) == [1, 4]


def test_work_of_an_op_that_is_not_in_the_profile_is_work_without_an_op():
    found = rows(by_op(profile([op(1, "a", 0, 10)], [kernel(0, 4, 77)])))
    assert found[NO_OP]["self_device_ns"] == 4
    assert found["a"]["device_ns"] == 0


def test_an_op_whose_parent_is_not_in_the_profile_is_a_root():
    frame = by_op(profile([op(1, "a", 0, 10, parent=99)], [kernel(0, 4, 1)]))
    assert frame["device_ns"].tolist() == [4]


def test_ops_that_are_their_own_ancestors_do_not_hang():
    cycle = profile(
        ops=[op(1, "a", 0, 9, 2), op(2, "b", 0, 9, 1), op(3, "c", 0, 9, 3), op(4, "d", 0, 9, 1)],
        activities=[kernel(0, 4, 1), kernel(4, 5, 2), kernel(5, 7, 3), kernel(7, 15, 4)],
    )
    found = rows(by_op(cycle))
    assert sum(row["self_device_ns"] for row in found.values()) == 15
    assert found["a"]["device_ns"] == 12


def test_coalesced_statements_count_all_their_executions():
    found = rows(by_op(profile([line(1, 2, 0, 100, count=5000, duration_ns=60)])))
    assert found["line 2"]["count"] == 5000
    assert found["line 2"]["host_ns"] == 60


def replayed():
    return profile(
        ops=[
            op(1, "warm-up", -50, -10, status="earlier"),
            op(2, "replay", 0, 50),
            op(3, "unused", -90, -60, status="earlier"),
        ],
        activities=[
            kernel(0, 10, 2, capture_op_id=1),
            kernel(10, 14, 2, capture_op_id=55),
            kernel(14, 15, 2),
        ],
    )


def test_a_replayed_node_counts_for_the_op_that_replayed():
    found = rows(by_op(replayed()))
    assert set(found) == {"replay"}
    assert found["replay"]["device_ns"] == 15


def test_a_replayed_node_counts_for_the_op_that_captured_it_where_asked():
    found = rows(by_op(replayed(), attribution="capture"))
    assert found["warm-up"]["device_ns"] == 10
    assert found["replay"]["device_ns"] == 5
    assert "unused" not in found
    assert found["warm-up"]["count"] == found["warm-up"]["host_ns"] == 0


@pytest.mark.parametrize("breakdown", [by_op, by_line])
def test_an_unknown_attribution_is_refused(breakdown):
    with pytest.raises(ValueError, match="'launch' or 'capture'"):
        breakdown(nested(), attribution="kernel")


def test_a_graph_launch_is_work_only_where_its_nodes_are_not_recorded():
    launches = profile(
        [op(1, "a", 0, 100)],
        [
            activity("graph_launch", 0, 30, 1, correlation_id=1),
            activity("graph_launch", 30, 60, 1, correlation_id=2),
            kernel(30, 55, 1, correlation_id=2),
        ],
    )
    assert device_work(launches.tables["activities"]).tolist() == [True, False, True]
    assert rows(by_op(launches))["a"]["device_ns"] == 30 + 25


def test_by_line_gives_work_of_ranges_to_their_statement():
    frame = by_line(nested())
    found = rows(frame.iloc[:-1], "line")
    assert found[2]["self_device_ns"] == found[2]["device_ns"] == 80
    assert found[1]["self_device_ns"] == 5
    assert found[1]["device_ns"] == 85
    assert found[2]["self_host_ns"] == 200
    assert found[1]["self_host_ns"] == 700
    assert [found[1][n] for n in ("count", "kernels", "memcpys", "bytes")] == [1, 2, 1, 1088]
    assert frame["self_device_ns"].sum() == 92


def test_by_line_follows_the_source_and_quotes_it():
    frame = by_line(nested())
    assert frame["line"].tolist()[:-1] == [1, 2]
    assert frame["source"].tolist() == ["for batch in batches:", "y = model(batch)", NO_LINE]
    assert pd.isna(frame["cell"].iloc[-1])


def test_the_cell_itself_is_no_line():
    cell = op(1, "In[1]", 0, 9, op_type="cell", cell="In[1]", line=1)
    assert by_line(profile([cell, line(2, 1, 0, 5, 1)]))["host_ns"].tolist() == [5]


def test_by_line_falls_back_to_the_statements_name():
    frame = by_line(profile([line(1, 7, 0, 1)], sources={"In[1]": "one line\n"}))
    assert frame["source"].tolist() == ["line 7"]


def test_by_line_counts_lines_as_python_does():
    frame = by_line(profile([line(1, 2, 0, 1)], sources={"In[1]": 'a = "\x0c"\r\nb = 2'}))
    assert frame["source"].tolist() == ["b = 2"]


def test_by_line_keeps_cells_apart():
    two = profile(
        [line(1, 1, 0, 50, cell="In[9]"), line(2, 1, 10, 40, 1, cell="In[2]")],
        [kernel(0, 9, 2), kernel(9, 10, 1)],
    )
    found = rows(by_line(two), "cell")
    assert list(found) == ["In[9]", "In[2]"]
    assert found["In[9]"]["self_device_ns"] == 1
    assert found["In[9]"]["device_ns"] == 10


def test_statements_on_other_threads_do_not_lower_a_lines_own_host_time():
    threads = profile([line(1, 1, 0, 50), line(2, 2, 10, 40, 1, thread_id=2)])
    assert by_line(threads)["self_host_ns"].tolist() == [50, 30]


def test_by_kernel_summarises_durations():
    durations = [1] * 10 + [5] * 9 + [100]
    grids = [(1, 1, 1)] * 8 + [(2, 3, 4)] * 12
    shapes = [dict(zip(("grid_x", "grid_y", "grid_z"), grid, strict=True)) for grid in grids]
    found = by_kernel(
        profile(
            [op(1, "a", 0, 1), op(2, "b", 0, 1)],
            [
                kernel(0, d, 1 + i % 2, name="gemm", **shape)
                for i, (d, shape) in enumerate(zip(durations, shapes, strict=True))
            ]
            + [kernel(0, 400, name="other"), activity("memcpy", 0, 445)],
        )
    )
    assert found["name"].tolist() == ["other", "gemm"]
    other, gemm = found.iloc[0], found.iloc[1]
    assert other["min_ns"] == other["p95_ns"] == other["max_ns"] == 400
    assert (gemm["count"], gemm["device_ns"], gemm["mean_ns"]) == (20, 155, 8)
    assert (gemm["min_ns"], gemm["p95_ns"], gemm["max_ns"]) == (1, 5, 100)
    assert gemm["grid"] == (2, 3, 4)
    assert gemm["block"] is None
    assert found["ops"].tolist() == [0, 2]
    assert found["share"].tolist() == pytest.approx([0.4, 0.155])


BY = {"by_op": by_op, "by_line": by_line, "by_kernel": by_kernel}


@pytest.mark.parametrize("name", BY)
def test_empty_breakdowns_have_the_dtypes_of_full_ones(name):
    def dtypes(frame):
        return {
            column: str(getattr(getattr(dtype, "categories", None), "dtype", dtype))
            for column, dtype in frame.dtypes.items()
        }

    empty, full = BY[name](profile()), BY[name](nested())
    assert len(empty) == 0
    assert dtypes(empty) == dtypes(full)
    assert "object" in dtypes(empty).values()


trees = st.lists(
    st.tuples(
        st.integers(-1, 12), st.sampled_from("abc"), st.sampled_from([None, 1, 2]), st.booleans()
    ),
    max_size=12,
)
work = st.lists(
    st.tuples(
        st.sampled_from(["kernel", "memcpy", "memset", "synchronization"]),
        st.integers(0, 2**40),
        st.integers(-1, 14),
        st.integers(-1, 14),
    ),
    max_size=20,
)


@settings(deadline=None)
@given(trees, work, st.sampled_from(["launch", "capture"]))
def test_own_device_time_always_adds_up(tree, launched, attribution):
    some = profile(
        [
            op(i, name, 0, 9, parent, line=at, cell="In[1]" if at else None, thread_id=1 + other)
            for i, (parent, name, at, other) in enumerate(tree)
        ],
        [
            activity(kind, 0, duration, op_id, capture_op_id=capture)
            for kind, duration, op_id, capture in launched
        ],
    )
    everything = sum(d for kind, d, _, _ in launched if kind != "synchronization")
    for breakdown in (by_op, by_line):
        frame = breakdown(some, attribution=attribution)
        assert frame["self_device_ns"].sum() == everything
        assert (frame["self_device_ns"] <= frame["device_ns"]).all()
        assert (frame["device_ns"] <= everything).all()
        assert (frame["self_host_ns"] >= 0).all()


def naive_tree(parents):
    """Ancestors of each row, itself first; a row on a cycle is a root."""
    known = {i: p if 0 <= p < len(parents) else None for i, p in enumerate(parents)}
    for i in list(known):
        seen, at = [], known[i]
        while at is not None and at not in seen:
            seen.append(at)
            at = parents[at] if 0 <= parents[at] < len(parents) else None
        if i in seen:
            known[i] = None
    chains = []
    for i in range(len(parents)):
        chain = [i]
        while known[chain[-1]] is not None:
            chain.append(known[chain[-1]])
        chains.append(chain)
    return chains


@settings(deadline=None)
@given(st.lists(st.integers(-1, 15), max_size=16), st.data())
def test_tree_agrees_with_walking_up_the_parents(parents, data):
    n = len(parents)
    tree = OpTree(profile([op(i, "x", 0, 1, p) for i, p in enumerate(parents)]).tables["ops"])
    chains = naive_tree(parents)
    values = data.draw(st.lists(st.integers(0, 99), min_size=n, max_size=n))
    sums = [sum(values[j] for j in range(n) if i in chains[j]) for i in range(n)]
    assert tree.subtree_sum(np.array(values, np.int64)).tolist() == sums
    marked = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    nearest = [next((j for j in chain if marked[j]), -1) for chain in chains]
    assert tree.nearest(np.array(marked, bool)).tolist() == nearest
    groups = data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n))
    outer = [
        groups[i] >= 0 and all(groups[j] != groups[i] for j in chain[1:])
        for i, chain in enumerate(chains)
    ]
    assert tree.outermost(np.array(groups, np.int64)).tolist() == outer


@pytest.mark.parametrize("size", [3, 1000])
@settings(deadline=None)
@given(st.lists(st.integers(0, 9), max_size=30), st.integers(0, 5), st.integers(-1, 29))
def test_ops_in_the_order_of_their_starts_keep_it_in_the_tree(size, closed, first_id, wrong):
    parents, stack = [], []
    for row, levels in enumerate(closed):
        # So many ops close before the next one opens.
        del stack[max(len(stack) - max(levels - 3, 0), 0) :]
        parents.append(stack[-1] if stack else -1)
        stack.append(row)
    if 0 <= wrong < len(parents):
        parents[wrong] = wrong // 2 - 1  # as a rule no preorder any more
    ops = [op(i + first_id, "x", 0, 1, p + first_id if p >= 0 else -1)
           for i, p in enumerate(parents)]  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optree, "pieces", partial(lookup.pieces, size=size))
        patch.setattr(lookup, "pieces", partial(lookup.pieces, size=size))
        tree = OpTree(profile(ops).tables["ops"])
    chains = naive_tree(parents)
    assert tree.depth.tolist() == [len(chain) - 1 for chain in chains]
    below = [sum(i in chain for chain in chains) for i in range(len(parents))]
    assert (tree.leave - tree.enter).tolist() == below
    for row, chain in enumerate(chains):
        for above in chain:
            assert tree.enter[above] <= tree.enter[row] < tree.leave[above]
    if wrong < 0:
        assert tree.enter.tolist() == list(range(len(parents)))


def test_a_tree_as_deep_as_it_is_large_is_summed_at_once():
    n = 50_000
    ops = profile([op(i, "x", 0, 1, i - 1) for i in range(n)]).tables["ops"]
    assert OpTree(ops).subtree_sum(np.ones(n, np.int64)).tolist() == list(range(n, 0, -1))


@settings(deadline=None)
@given(
    st.lists(st.integers(-3, 20) | st.integers(-(2**63), 2**63 - 1), max_size=20),
    st.lists(st.integers(-3, 20) | st.integers(-(2**63), 2**63 - 1), max_size=20),
)
def test_index_finds_the_first_row_of_an_id(ids, wanted):
    found = RowIndex(np.array(ids, np.int64)).rows(np.array(wanted + ids, np.int64))
    assert found.tolist() == [ids.index(i) if i in ids and i != -1 else -1 for i in wanted + ids]


def test_a_large_profile_adds_up():
    large = synthetic_profile(50_000, seed=3)
    activities = large.tables["activities"]
    everything = activities["duration_ns"][device_work(activities)].sum()
    assert by_op(large)["self_device_ns"].sum() == everything
    assert by_line(large)["self_device_ns"].sum() == everything
    kernels = activities.names("kind").equals("kernel")
    assert by_kernel(large)["device_ns"].sum() == activities["duration_ns"][kernels].sum()
