"""by_path against paths walked one activity at a time."""

import pandas as pd
import pytest

from epprof_nb.analysis.breakdowns.by_path import MAX_DEPTH
from epprof_nb.testing import synthetic_profile
from epprof_nb.views.queries.icicle import icicle
from epprof_nb.views.view_model import ViewModel
from tests.helpers.tiny import activity, kernel, line, op, profile


def nested():
    return profile(
        ops=[
            op(1, "In[1]", 0, 1000, op_type="cell"),
            line(2, 1, 0, 900, 1),
            op(3, "f", 10, 110, 2),
            op(4, "f", 210, 310, 2),
            op(5, "f", 220, 300, 4),
        ],
        activities=[
            kernel(30, 60, 3, name="k"),
            kernel(240, 280, 4, name="k"),
            kernel(280, 285, 5, name="k"),
            activity("memcpy", 300, 310, 5, name="k", bytes=1024),
            activity("synchronization", 0, 900, 2),
            kernel(400, 407, name="stray"),
        ],
    )


def by_names(frame):
    """{path of names: row}; a leaf's name is followed by its level."""
    paths, found = {}, {}
    for number, row in frame.iterrows():
        name = row["name"] if row["level"] not in ("kernel", "memcpy") else row["level"] + " k"
        above = paths[row["parent"]] if pd.notna(row["parent"]) else ()
        paths[number] = (*above, name)
        assert paths[number] not in found
        assert row["depth"] == len(above)
        found[paths[number]] = row
    return found


def test_paths_of_one_name_are_one_row_with_their_sums():
    found = by_names(nested().by_path())
    f = found["session", "In[1]", "line 1", "f"]
    assert (f["count"], f["device_ns"], f["self_device_ns"], f["host_ns"]) == (2, 85, 70, 200)
    assert (f["kernels"], f["bytes"]) == (3, 1024)
    inner = found["session", "In[1]", "line 1", "f", "f"]
    assert (inner["count"], inner["device_ns"], inner["self_device_ns"]) == (1, 15, 15)
    k = found["session", "In[1]", "line 1", "f", "kernel k"]
    assert (k["count"], k["device_ns"], k["self_device_ns"]) == (2, 70, 0)
    assert k["host_ns"] is pd.NA
    session = found["session",]
    assert (session["device_ns"], session["host_ns"], session["kernels"]) == (92, 1000, 4)
    stray = found["session", "(no op)", "kernel k"]
    assert stray["device_ns"] == 7
    statement = found["session", "In[1]", "line 1"]
    assert (statement["level"], statement["cell"], statement["line"]) == ("line", "In[1]", 1)


def test_host_time_is_missing_where_none_was_measured():
    ops = [
        op(1, "main", 0, 100),
        op(2, "Conv", 10, 20, 1, op_type="node", status="learned"),
    ]
    found = by_names(profile(ops, [kernel(12, 15, 2)]).by_path())
    assert found["session", "main"]["host_ns"] == found["session",]["host_ns"] == 100
    assert found["session", "main", "Conv"]["host_ns"] is pd.NA


def test_device_time_of_leaves_adds_up_on_every_step():
    made = synthetic_profile(activities=3000)
    frame = made.by_path()
    assert frame["device_ns"].iloc[0] == made.by_op()["self_device_ns"].sum()
    below = frame.groupby("parent")["device_ns"].sum()
    inner = frame.loc[below.index, "device_ns"]
    assert below.tolist() == inner.tolist()
    assert frame["self_device_ns"].sum() == frame["device_ns"].iloc[0]
    assert (frame["parent"].dropna() < frame.index[1:]).all()


def test_every_activity_is_on_the_path_of_its_ops():
    made = synthetic_profile(activities=400)
    ops = made.ops.to_dict("index")
    expected = {}
    for row in made.activities.to_dict("records"):
        if row["kind"] == "synchronization":
            continue
        path, at = [f"{row['kind']} {row['name']}"], row["op_id"]
        if pd.isna(at):
            path.append("(no op)")
        while pd.notna(at):
            line = ops[at]["line"]
            path.append(f"{ops[at]['name']} {'' if pd.isna(line) else line}")
            at = ops[at]["parent_op_id"]
        key = tuple(reversed(path))
        expected[key] = expected.get(key, 0) + row["duration_ns"]
    frame, paths, found = made.by_path(), {0: ()}, {}
    for number, row in frame.iloc[1:].iterrows():
        leaf = row["level"] in ("kernel", "memcpy", "memset")
        line = "" if pd.isna(row["line"]) else row["line"]
        step = f"{row['level'] if leaf else row['name']} {row['name'] if leaf else line}"
        step = "(no op)" if row["name"] == "(no op)" else step
        paths[number] = (*paths[row["parent"]], step)
        if leaf:
            found[paths[number]] = row["device_ns"]
    assert found == expected


def test_deep_recursion_is_merged_at_max_depth():
    deep = MAX_DEPTH * 3
    ops = [op(i + 1, "f", i, 1000 - i, i or -1) for i in range(deep)]
    frame = profile(ops, [kernel(0, 5, deep)]).by_path()
    assert frame["depth"].max() == MAX_DEPTH + 1
    assert frame["device_ns"].iloc[0] == 5


def test_empty_profile_has_only_the_session():
    empty, some = profile().by_path(), nested().by_path()
    assert empty["name"].tolist() == ["session"]
    assert empty.dtypes.astype(str).tolist() == some.dtypes.astype(str).tolist()


@pytest.mark.parametrize("limit", [1, 5, 20, 1000])
def test_rows_beyond_the_limit_are_merged(limit):
    data = icicle(ViewModel(synthetic_profile(activities=2000)), max_nodes=limit)
    kept = data["others"].count(0)
    assert kept == min(limit, data["paths"])
    assert all(above < at for at, above in enumerate(data["parent"]))
    assert len(data["parent"]) <= 2 * limit
    for at in range(kept):
        below = [i for i, above in enumerate(data["parent"]) if above == at]
        if below:
            assert sum(data["device_ns"][i] for i in below) == data["device_ns"][at]
    stands_for = sum(data["others"])
    assert (stands_for > 0) == (limit < data["paths"])
