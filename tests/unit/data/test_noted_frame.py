"""Tables of profiles without device work, shown without the columns that have no value."""

import pickle

import pandas as pd

from epprof_nb.data.noted_frame import HostFrame
from tests.helpers.tiny import kernel, line, op, profile

ROWS = [line(1, 1, 0, 50), op(2, "part", 10, 40, 1), op(3, "part", 60, 90)]


def test_columns_of_device_work_are_not_shown_without_a_device():
    prof = profile(ROWS, info={"wall_ns": 100})
    table = prof.by_op()
    for shown in (repr(table), table._repr_html_(), repr(table.head(1)), repr(table.tail(1))):
        assert "device_ns" not in shown
        assert "host_ns" in shown
        assert "columns are 0 or missing in all rows and not shown." in shown
    # They exist, in the order of the schema, and a selection of columns is shown unchanged.
    assert table.columns.tolist() == profile(ROWS, [kernel(10, 20, 2)]).by_op().columns.tolist()
    assert "device_ns" in repr(table[["name", "device_ns"]])
    assert type(table[["name"]]) is type(table.sort_values("name")) is pd.DataFrame
    assert type(pickle.loads(pickle.dumps(table))) is pd.DataFrame


def test_tables_of_device_work_are_shown_in_full():
    table = profile(ROWS, [kernel(10, 20, 2)], info={"wall_ns": 100}).by_op()
    assert type(table) is pd.DataFrame
    assert "not shown" not in repr(table)


def test_zeros_in_some_rows_are_values():
    prof = profile(ROWS, info={"wall_ns": 100})
    assert "self_host_ns" in prof.by_op().to_string()
    assert "line" in repr(prof.by_op())  # missing in some
    # A note of the table stays.
    noted = prof.by_operator(shapes=True)
    assert "No operator of PyTorch was recorded" in repr(noted)


def test_a_terminal_does_not_obey_names():
    frame = HostFrame({"name": ["a\x1b[31m\u202e"], "host_ns": [7]})
    assert "\x1b" not in repr(frame)
    assert repr(frame).splitlines()[1].split() == ["0", r"a\x1b[31m\u202e", "7"]
    assert frame["name"].tolist() == ["a\x1b[31m\u202e"]
