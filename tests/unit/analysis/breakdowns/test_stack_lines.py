"""Lines of Python stacks: in by_line, joined and by_stack, beside marked statements."""

import numpy as np
import pandas as pd
import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.base.line_chains import NO_LINE
from epprof_nb.analysis.base.source_text import statement_starts
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.breakdowns.line_totals import line_totals
from epprof_nb.analysis.stacks.by_stack import NO_STACK
from tests.helpers.tiny import activity, call, kernel, line, op, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks

CELL = "%%gpuprofile prof\nloss = train(\n    10)\nloss.item()\n"
MODEL = "def forward(x):\n    y = layer(x)\n    return y\n"


def training():
    """A cell that trains in a function of an earlier cell, which calls a file and a library."""
    rows, (fwd, back, item) = stack_rows(
        "In[5]:3 In[3]:train:7 model.py:forward:2 lib/nn.py:call:40 lib/nn.py:linear:9",
        "In[5]:2 In[3]:train:7 model.py:forward:2 lib/nn.py:call:40 lib/nn.py:relu:12",
        "In[5]:4",
    )
    exact = {"stack_source": "exact"}
    prof = profile(
        ops=[
            op(1, "In[5]", 0, 100, op_type="cell"),
            line(2, 2, 0, 60, 1, cell="In[5]", end_line=3),
            line(3, 4, 60, 90, 1, cell="In[5]", end_line=4),
        ],
        activities=[
            kernel(10, 30, 2, correlation_id=1, stack_id=fwd, **exact),
            kernel(30, 35, 2, correlation_id=2, stack_id=back, **exact),
            kernel(40, 47, 2, correlation_id=3),
            kernel(50, 51, correlation_id=4),
            activity("memcpy", 70, 72, 3, correlation_id=5, stack_id=item, bytes=8, **exact),
        ],
        api_calls=[
            call(5, 6, correlation_id=1, op_id=2, stack_id=fwd),
            call(7, 8, correlation_id=2, op_id=2, stack_id=back),
            call(9, 10, correlation_id=3, op_id=2),
            call(61, 80, correlation_id=5, op_id=3, stack_id=item, name="cuMemcpyDtoH_v2"),
        ],
        info={"cell": "In[5]", "wall_ns": 100},
        sources={"In[5]": CELL, "model.py": MODEL},
    )
    return with_stacks(prof, rows)


def by_place(frame):
    return {
        (None if pd.isna(r["cell"]) else r["cell"], None if pd.isna(r["line"]) else r["line"]): r
        for r in frame.to_dict("records")
    }


def test_every_line_of_the_user_in_a_stack_has_the_work():
    found = by_place(training().by_line())
    assert list(found) == [
        ("In[5]", 2), ("In[5]", 4), ("In[3]", 7), ("model.py", 2), (None, None),
    ]  # fmt: skip
    assert found["In[5]", 2]["device_ns"] == 20 + 5 + 7  # also what has no stack
    assert found["In[3]", 7]["device_ns"] == found["model.py", 2]["device_ns"] == 25
    assert found["In[3]", 7]["function"] == "train"
    assert found["model.py", 2]["source"] == "y = layer(x)"
    assert found["In[3]", 7]["source"] == "train"  # of which the text is not known
    assert found[None, None]["source"] == NO_LINE
    assert found[None, None]["device_ns"] == 1
    assert found["model.py", 2]["launches"] == 2
    assert (found["In[5]", 4]["waits"], found["In[5]", 4]["wait_ns"]) == (1, 19)


def test_only_statements_have_executions_and_host_times():
    found = by_place(training().by_line())
    assert (found["In[5]", 2]["count"], found["In[5]", 2]["host_ns"]) == (1, 60)
    assert found["In[5]", 2]["mean_device_ns"] == 32
    for name in ("count", "host_ns", "mean_device_ns", "p95_device_ns", "p95_host_ns"):
        assert pd.isna(found["model.py", 2][name])
    assert training().by_line()["count"].dtype == "Int64"


def test_own_work_is_that_of_the_innermost_line_and_adds_up():
    frame = training().by_line(inclusive=False)
    found = by_place(frame)
    assert found["model.py", 2]["self_device_ns"] == 25
    assert found["In[3]", 7]["self_device_ns"] == 0
    assert found["In[5]", 2]["self_device_ns"] == 7
    assert frame["self_device_ns"].sum() == 35
    assert frame["self_launches"].sum() == 5
    assert frame["self_waits"].sum() == 1


def test_lines_of_libraries_are_there_on_request():
    found = by_place(training().by_line(inclusive=False, library=True))
    assert found["lib/nn.py", 9]["self_device_ns"] == 20
    assert found["lib/nn.py", 12]["self_device_ns"] == 5
    assert found["model.py", 2]["self_device_ns"] == 0
    assert by_place(training().by_line(library=True))["lib/nn.py", 40]["device_ns"] == 25


def test_a_recursive_line_counts_its_work_once():
    rows, (deep,) = stack_rows("In[1]:1 a.py:f:3 a.py:f:3 a.py:f:3")
    prof = with_stacks(profile(activities=[kernel(0, 9, stack_id=deep)]), rows)
    assert by_place(prof.by_line())["a.py", 3]["device_ns"] == 9


def test_a_replay_counts_where_it_was_launched_or_where_its_nodes_were_captured():
    rows, (replay, capture) = stack_rows("In[1]:4", "In[1]:2 a.py:f:3")
    nodes = {"stack_id": replay, "capture_stack_id": capture, "correlation_id": 1}
    prof = with_stacks(profile(activities=[kernel(0, 9, **nodes), kernel(9, 12, **nodes)]), rows)
    found = by_place(prof.by_line())
    assert found["In[1]", 4]["launches"] == 1
    assert list(found) == [("In[1]", 4)]
    captured = by_place(prof.by_line(attribution="capture"))
    assert captured["a.py", 3]["device_ns"] == 12
    assert prof.by_stack(attribution="capture")["name"].tolist()[-2] == "f"
    with pytest.raises(ValueError, match="attribution"):
        prof.by_stack(attribution="other")


def test_joined_has_the_innermost_line_and_the_line_of_the_cell_that_called_it():
    frame = training().joined()
    places = frame[["cell", "line", "function", "caller_cell", "caller_line"]].astype(object)
    found = places.where(places.notna(), None).to_numpy().tolist()
    assert found[0] == ["model.py", 2, "forward", "In[5]", 2]
    assert found[2] == ["In[5]", 2, None, "In[5]", 2]  # without a stack
    assert found[3] == [None] * 5
    assert found[4] == ["In[5]", 4, "<module>", "In[5]", 4]


def test_the_tree_of_stacks_adds_up_and_leaves_libraries_out():
    frame = training().by_stack()
    assert not frame["level"].eq("library").any()
    named = frame.set_index("name")
    assert named.loc["session", "device_ns"] == 35
    assert named.loc["forward", ["device_ns", "self_device_ns", "launches"]].tolist() == [25, 25, 2]
    assert named.loc[NO_STACK, "device_ns"] == 8
    assert frame.loc[frame["name"].eq("session"), "waits"].tolist() == [1]
    assert frame["self_device_ns"].sum() == 35
    parents = frame["parent"].dropna()
    assert (parents < parents.index).all()
    full = training().by_stack(library=True)
    assert full["name"].isin(["linear", "relu"]).sum() == 2
    assert full["self_device_ns"].sum() == 35


def test_each_row_of_the_tree_is_followed_by_those_below_it_largest_first():
    rows, (small, large, deep) = stack_rows(
        "In[5]:2 model.py:forward:2", "In[5]:4", "In[5]:4 model.py:late:3"
    )
    kernels = [
        kernel(0, 9, stack_id=small, name="a"),
        kernel(10, 40, stack_id=large, name="b"),
        kernel(50, 90, stack_id=deep, name="c"),
    ]
    made = profile(activities=kernels, sources={"In[5]": CELL, "model.py": MODEL})
    frame = with_stacks(made, rows).by_stack()
    assert frame["name"].tolist() == [
        "session", "<module>", "late", "c", "b", "<module>", "forward", "a",
    ]  # fmt: skip
    assert frame["parent"].fillna(-1).tolist() == [-1, 0, 1, 2, 1, 0, 5, 6]
    assert frame.index.tolist() == list(range(8))


def test_the_tree_of_stacks_has_the_text_of_its_lines():
    source = training().by_stack().set_index("name")["source"]
    assert source["forward"] == "y = layer(x)"
    assert source["<module>"].tolist() == ["loss = train(", "loss.item()"]
    assert source[["session", "train", NO_STACK]].isna().all()  # train's cell is not known


def test_a_tree_without_stacks_has_the_row_of_work_without_one():
    frame = profile(activities=[kernel(0, 9)]).by_stack()
    assert frame["name"].tolist() == ["session", NO_STACK, "kernel"]
    assert profile().by_stack()["name"].tolist() == ["session"]


def test_a_line_of_a_statement_over_several_lines_is_its_first():
    lines = ProfileIndex(training()).cached(StackLines)
    cells = np.flatnonzero(lines.file.equals("In[5]"))
    assert sorted(set(lines.line[cells].tolist())) == [2, 4]


def test_a_source_that_does_not_parse_keeps_its_lines():
    assert statement_starts("x = (\n") == {}
    assert statement_starts("if a:\n    f(\n        x)\n")[3] == 2
    assert statement_starts("!ls\n%matplotlib inline\nx = 1\n") == {3: 3}


def test_an_unowned_stack_leaves_the_line_to_the_statement():
    rows, (pure,) = stack_rows("lib/thread.py:run:5 lib/nn.py:backward:7")
    prof = with_stacks(
        profile([line(1, 3, 0, 50)], [kernel(0, 9, 1, stack_id=pure)]), rows
    )  # fmt: skip
    found = by_place(prof.by_line())
    assert found["In[1]", 3]["device_ns"] == 9
    assert prof.by_stack()["name"].tolist()[1] == NO_STACK
    assert prof.joined()["line"].tolist() == [3]


def test_findings_name_the_function_and_the_file_outside_of_the_profiled_cell():
    from epprof_nb.analysis.findings.finding import launcher_name, stack_of

    index = ProfileIndex(training())
    assert stack_of(index, "activities", 2) == -1
    stack = stack_of(index, "activities", 0)
    assert launcher_name(index, stack, -1) == "line 2 of `forward` (model.py: `y = layer(x)`)"
    in_cell = stack_of(index, "api_calls", 3)
    assert launcher_name(index, in_cell, -1) == "line 4 (`loss.item()`)"
    assert launcher_name(index, -1, 1) == "line 2 (`loss = train(`)"


def test_places_of_waits_are_the_lines_that_wait():
    frame = training().waits()
    assert frame[["cell", "line", "name"]].to_numpy().tolist() == [["In[5]", 4, "line 4"]]
    launches = training().launches()
    assert set(zip(launches["cell"], launches["line"], strict=True)) == {
        ("model.py", 2), ("In[5]", 2), ("In[5]", 4),
    }  # fmt: skip
    assert launches["op_id"].tolist()[0] in (2, 3)


def test_the_source_has_the_lines_that_launched():
    from epprof_nb.analysis.breakdowns.line_totals import line_totals

    found = {(t.cell, t.line): t for t in line_totals(ProfileIndex(training()))}
    assert list(found) == [("In[5]", 2), ("In[5]", 4), ("model.py", 2)]
    model = found["model.py", 2]
    assert (model.device_ns, model.count, model.kernels) == (25, 2, 2)
    assert (model.start_ns, model.end_ns) == (10, 35)
    assert [training().stacks["function"][stack] for stack in model.stacks] == [
        "forward", "call", "linear", "forward", "call", "relu",
    ]  # fmt: skip
    assert found["In[5]", 2].device_ns == 7
    assert found["In[5]", 2].stacks == []


def test_the_hot_line_is_the_innermost_one_and_its_evidence_adds_up():
    prof = training()
    (text,) = prof.insights().query("kind == 'hot line'")["text"]
    assert text.startswith("Line 2 of `forward` (model.py: `y = layer(x)`) accounts for 71 % of")
    row = prof.insights().query("kind == 'hot line'").iloc[0]
    assert (row["cell"], row["line"]) == ("model.py", 2)
    assert prof.evidence(row)["duration_ns"].tolist() == [20, 5]


def test_frames_without_a_file_are_one_line_whether_the_file_is_missing_or_empty():
    rows, (outer, inner) = stack_rows("a.py:f:1", "a.py:f:1 b.py:f:1")
    rows[outer]["file"], rows[inner]["file"] = None, ""
    prof = profile(
        activities=[
            kernel(0, 10, correlation_id=1, stack_id=outer, stack_source="exact"),
            kernel(10, 30, correlation_id=2, stack_id=inner, stack_source="exact"),
        ],
        info={"wall_ns": 30},
    )
    index = ProfileIndex(with_stacks(prof, rows))
    assert [(line.cell, line.line, line.device_ns) for line in line_totals(index)] == [("", 1, 30)]
