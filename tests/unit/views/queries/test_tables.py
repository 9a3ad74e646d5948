"""Tables of the viewer: availability, contents and queries."""

import json

import pandas as pd
import pytest

from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_profile
from epprof_nb.views.queries.tables import (
    available_breakdowns,
    breakdown_table,
    query_table,
    to_columns,
)
from epprof_nb.views.queries.view_selection import Selections
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.widget.requests import handle
from epprof_nb.views.wire.headers import full_header
from tests.helpers.tiny import activity, kernel, line, op, profile
from tests.helpers.training import training


def many(n=900):
    ops = [op(i + 1, f"op {i}", i * 10, i * 10 + 9) for i in range(n)]
    return profile(ops, [kernel(i * 10, i * 10 + 1 + i % 7, i + 1) for i in range(n)])


def values(data, name):
    return next(c["values"] for c in data["columns"] if c["name"] == name)


def test_only_breakdowns_that_say_something_are_offered():
    assert available_breakdowns(ViewModel(profile())) == ["op"]
    assert available_breakdowns(ViewModel(profile([op(1, "a", 0, 1)], [kernel(0, 1, 1)]))) == [
        "op",
        "kernel",
    ]
    node = op(1, "mm", 0, 1, category="node", op_type="MatMul")
    assert available_breakdowns(ViewModel(profile([node]))) == ["op", "op_type", "node"]
    assert available_breakdowns(ViewModel(profile([line(1, 1, 0, 5)]))) == ["op", "line"]
    made = synthetic_profile(activities=200)
    assert available_breakdowns(ViewModel(made)) == ["op", "kernel", "line", "stream"]
    trained = ViewModel(training())
    assert available_breakdowns(trained) == ["op", "kernel", "line", "module"]
    assert full_header(trained)["trees"].keys() == {"tree", "module_tree"}
    assert full_header(ViewModel(made))["trees"].keys() == {"tree"}


def test_the_tree_of_modules_has_short_names_below_their_model():
    selections = Selections(ViewModel(training()))
    tree = handle(selections, {"type": "tree", "by": "module_tree"}).content["tree"]
    modules = [i for i, level in enumerate(tree["level"]) if tree["names"][level] == "module"]
    at = {tree["short_names"].get(tree["name"][i], "net"): i for i in modules}
    assert tree["parent"][at["a"]] == tree["parent"][at["b"]] == at["net"]
    assert tree["names"][tree["name"][at["b"]]] == "net.b"


def test_a_with_statement_that_only_opens_an_op_has_no_row_of_its_own():
    statement = {"name": 'with epprof_nb.op("step"):'}
    ops = [
        line(1, 4, 0, 90) | statement,
        op(2, "step", 1, 89, parent=1),
        line(3, 5, 2, 80, parent=2),
    ]
    prof = profile(ops, [kernel(20, 30, op_id=3)])
    data = breakdown_table(ViewModel(prof), "op")
    assert values(data, "name") == ["step", "line 5"]
    assert data["rows"] == 2
    assert breakdown_table(ViewModel(prof), "op", pattern="with")["found"] == 0
    assert statement["name"] in set(prof.by_op()["name"])
    # Work outside the op, or an execution without an op, is nowhere else in the table.
    prof = profile(ops, [kernel(20, 30, op_id=1)])
    assert statement["name"] in values(breakdown_table(ViewModel(prof), "op"), "name")
    prof = profile([*ops, line(4, 4, 95, 99) | statement])
    assert statement["name"] in values(breakdown_table(ViewModel(prof), "op"), "name")


def test_tables_are_plain_json_and_say_how_long_they_are():
    data = breakdown_table(ViewModel(many()), "op")
    assert json.loads(json.dumps(data)) == data
    assert data["rows"] == 900
    assert len(values(data, "name")) == 400
    # No copies, so no bandwidth: missing, not NaN, which JSON does not know.
    assert set(values(data, "bandwidth")) == {None}


def test_a_query_sorts_and_filters_all_rows():
    table = ViewModel(many()).by_op
    found = query_table(table, sort="name", descending=False, pattern=r"^op 8\d\d$")
    assert (found["rows"], found["found"]) == (900, 100)
    assert values(found, "name") == [f"op {i}" for i in range(800, 900)]
    longest = query_table(table, sort="device_ns", descending=True, limit=5)
    assert values(longest, "device_ns") == [7] * 5
    last = query_table(table, sort="line", descending=True, limit=3)
    assert values(last, "line") == [None] * 3


def test_a_query_takes_what_is_no_regular_expression_as_text():
    table = ViewModel(profile([op(1, "gemm<float>(int", 0, 1), op(2, "b", 0, 1)])).by_op
    found = query_table(table, pattern="FLOAT>(")
    assert values(found, "name") == ["gemm<float>(int"]
    assert found["note"].startswith("Not a regular expression")
    assert query_table(table, pattern="f.oat")["note"] == ""


def test_a_query_takes_an_unsupported_pattern_as_text():
    table = ViewModel(profile([op(1, "gemm(?=x)", 0, 1), op(2, "gemmx", 0, 1)])).by_op
    result = query_table(table, pattern="gemm(?=x)")
    assert values(result, "name") == ["gemm(?=x)"]
    assert result["note"].startswith("Look-around")
    assert result["note"].endswith("Searched as text instead.")


def test_a_query_looks_at_every_text_and_not_at_what_is_missing():
    lines = [line(1, 1, 0, 1), line(2, 2, 1, 2), line(3, 1, 2, 3, cell="In[2]")]
    work = profile(lines, sources={"In[1]": "x = load()\ny = x"})
    table = ViewModel(work).breakdown("line")
    assert values(query_table(table, pattern=r"^x = l.*\)$"), "source") == ["x = load()"]
    assert values(query_table(table, pattern=r"^In\[2"), "line") == [1]
    assert values(query_table(table, pattern="^$|none|nan"), "line") == []


def test_python_answers_for_a_table():
    selections = Selections(ViewModel(many()))
    asked = {"type": "table", "by": "op", "sort": "name", "descending": True, "pattern": "op 89"}
    response = handle(selections, asked).content["table"]
    assert (response["found"], values(response, "name")[0]) == (11, "op 899")
    assert "found" not in handle(selections, {"type": "table", "by": "op"}).content["table"]
    assert "error" in handle(selections, {"type": "table", "by": "nothing"}).content


@pytest.mark.parametrize("by", ["op", "op_type", "node", "kernel", "line", "stream"])
def test_every_table_of_an_empty_profile_is_empty(by):
    data = breakdown_table(ViewModel(profile()), by)
    assert data["rows"] == 0
    assert all(column["values"] == [] for column in data["columns"])


def test_names_of_any_length_are_shortened():
    work = profile([op(1, "x" * 10_000, 0, 1)], [activity("memcpy", 0, 1, 1)])
    table = ViewModel(work).by_op
    assert len(values(to_columns(table), "name")[0]) == 600


def test_a_view_gives_the_frame_of_the_table_it_opens_on():
    made = synthetic_profile(activities=300)
    for by in ("op", "kernel", "line", "stream"):
        pd.testing.assert_frame_equal(made.breakdown(by).to_frame(), getattr(made, f"by_{by}")())
    pd.testing.assert_frame_equal(made.breakdown("tree").to_frame(), made.by_path())
    trained = Profile.from_data(training())
    pd.testing.assert_frame_equal(trained.breakdown("module").to_frame(), trained.by_module())
    pd.testing.assert_frame_equal(
        trained.breakdown("module_tree").to_frame(), trained.by_path(by="module")
    )
    with pytest.raises(ValueError, match="by must be one of op, op_type"):
        made.breakdown("colour")
