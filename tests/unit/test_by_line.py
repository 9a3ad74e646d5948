"""The breakdown by line: statements, their ranges, their cells and their source."""

import pandas as pd
from tiny import kernel, line, nested, op, profile, rows

from epprof_nb.analysis.by_op import NO_LINE, by_line


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
