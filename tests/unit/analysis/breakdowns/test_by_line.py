"""The breakdown by line: statements, their ranges, their cells and their source."""

import pandas as pd
import pytest

from epprof_nb.analysis.base.line_chains import NO_LINE
from tests.helpers.tiny import kernel, line, nested, op, profile, rows


def test_by_line_includes_nested_statements_and_ranges():
    found = rows(nested().by_line().iloc[:-1], "line")
    assert found[2]["device_ns"] == 80
    assert found[1]["device_ns"] == 85
    assert (found[1]["host_ns"], found[2]["host_ns"]) == (900, 200)
    counted = ("count", "kernels", "memcpys", "memsets", "bytes")
    assert [found[1][name] for name in counted] == [1, 2, 1, 1, 1088]
    assert [found[2][name] for name in counted] == [2, 2, 1, 0, 1024]


def test_self_columns_give_work_of_ranges_to_their_statement_and_add_up():
    frame = nested().by_line(inclusive=False)
    found = rows(frame.iloc[:-1], "line")
    assert (found[1]["self_device_ns"], found[2]["self_device_ns"]) == (5, 80)
    assert (found[1]["self_host_ns"], found[2]["self_host_ns"]) == (700, 200)
    counted = ("self_kernels", "self_memcpys", "self_memsets", "self_bytes")
    assert [found[1][name] for name in counted] == [0, 0, 1, 64]
    assert [found[2][name] for name in counted] == [2, 1, 0, 1024]
    assert found[2]["self_launch_delay_ns"] == (10 + 20) // 2
    assert pd.isna(found[1]["self_launch_delay_ns"])
    assert frame["self_device_ns"].sum() == 92
    assert frame["self_kernels"].sum() == 3
    assert frame["self_share"].sum() == pytest.approx(1)


def test_inclusive_and_self_columns_do_not_mix():
    measures = {"count", "cell", "line", "source", "function"}
    inclusive, own = set(nested().by_line()), set(nested().by_line(inclusive=False))
    assert not [name for name in inclusive if name.startswith("self_")]
    assert not [name for name in own - measures if not name.startswith("self_")]
    assert inclusive & own == measures


def test_by_line_follows_the_source_and_quotes_it():
    frame = nested().by_line()
    assert frame["line"].tolist()[:-1] == [1, 2]
    assert frame["source"].tolist() == ["for batch in batches:", "y = model(batch)", NO_LINE]
    assert frame[["cell", "line", "count", "host_ns"]].iloc[-1].isna().all()


def test_the_cell_itself_is_no_line():
    cell = op(1, "In[1]", 0, 9, op_type="cell", cell="In[1]", line=1)
    assert profile([cell, line(2, 1, 0, 5, 1)]).by_line()["host_ns"].tolist() == [5]


def test_by_line_falls_back_to_the_statements_name():
    frame = profile([line(1, 7, 0, 1)], sources={"In[1]": "one line\n"}).by_line()
    assert frame["source"].tolist() == ["line 7"]


def test_by_line_counts_lines_as_python_does():
    frame = profile([line(1, 2, 0, 1)], sources={"In[1]": 'a = "\x0c"\r\nb = 2'}).by_line()
    assert frame["source"].tolist() == ["b = 2"]


def test_by_line_keeps_cells_apart():
    two = profile(
        [line(1, 1, 0, 50, cell="In[9]"), line(2, 1, 10, 40, 1, cell="In[2]")],
        [kernel(0, 9, 2), kernel(9, 10, 1)],
    )
    found = rows(two.by_line(), "cell")
    assert list(found) == ["In[9]", "In[2]"]
    own = rows(two.by_line(inclusive=False), "cell")
    assert own["In[9]"]["self_device_ns"] == 1
    assert found["In[9]"]["device_ns"] == 10


def test_statements_on_other_threads_do_not_lower_a_lines_own_host_time():
    threads = profile([line(1, 1, 0, 50), line(2, 2, 10, 40, 1, thread_id=2)])
    assert threads.by_line(inclusive=False)["self_host_ns"].tolist() == [50, 30]
