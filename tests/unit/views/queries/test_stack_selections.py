"""Selections of rows by line and of nodes by Python stack: the events that the row counts."""

from __future__ import annotations

import pytest

from epprof_nb.data.schema import DEVICE_KINDS
from epprof_nb.views.queries.icicle import icicle
from epprof_nb.views.queries.selected_events import select_events
from epprof_nb.views.queries.tables import breakdown_table
from epprof_nb.views.view_model import ViewModel
from tests.helpers.tiny import call, kernel, op, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks


def nested(*, with_cell: bool) -> ViewModel:
    """Recursion, a line that only waits, work of a library alone, and work without a stack."""
    rows, (deep, shallow, item, library) = stack_rows(
        "a.py:2 a.py:f:5 a.py:f:5 b.py:g:7 lib/nn.py:linear:9",
        "a.py:2 a.py:f:6",
        "a.py:3",
        "lib/threads.py:run:1",
    )
    ops = [op(1, "step", 0, 1_000, op_type="range")]
    if with_cell:
        ops.append(op(2, "f()", 0, 900, 1, op_type="line", category="line", cell="a.py", line=2))
    prof = profile(
        ops=ops,
        activities=[
            kernel(0, 100, 1, correlation_id=1, name="gemm", stack_id=deep),
            kernel(100, 130, 1, correlation_id=2, name="relu", stack_id=deep),
            kernel(200, 207, 1, correlation_id=3, name="gemm", stack_id=shallow),
            kernel(300, 301, 1, correlation_id=4, name="gemm", stack_id=library),
            kernel(400, 404, name="gemm"),
        ],
        api_calls=[
            call(500, 600, correlation_id=9, op_id=1, stack_id=item, name="cuStreamSynchronize"),
        ],
    )
    return ViewModel(with_stacks(prof, rows))


def _device_ns(view_model: ViewModel, query) -> int:
    """Device time of the activities of a query."""
    rows = select_events(view_model, {"what": "where", **query}).rows.get("act", [])
    activities = view_model.profile.tables["activities"]
    kinds = activities.names("kind").take(rows).to_list()
    assert set(kinds) <= set(DEVICE_KINDS)
    return int(activities["duration_ns"][rows].sum())


@pytest.mark.parametrize("options", [{}, {"sort": "line", "descending": True}])
@pytest.mark.parametrize("with_cell", [False, True])
def test_a_row_by_line_selects_the_work_that_it_counts(with_cell, options):
    view_model = nested(with_cell=with_cell)
    table = breakdown_table(view_model, "line", **options)
    columns = {column["name"]: column["values"] for column in table["columns"]}
    assert len(columns["line"]) == 6  # with that of work without a line
    found = {}
    for i, selection in enumerate(table["selections"]):
        place = columns["cell"][i], columns["line"][i]
        if selection is None:
            assert with_cell
            assert place == ("a.py", 2)  # its op selects it
        elif selection["prefix"] == "act":
            found[place] = _device_ns(view_model, selection)
            if place[0] is not None or not with_cell:
                assert found[place] == columns["device_ns"][i], place
        else:
            assert place == ("a.py", 3)
            selected = select_events(view_model, {"what": "where", **selection})
            assert selected.rows["api"].tolist() == [0]
    assert found[None, None] == (4 if with_cell else 5)


def test_a_profile_without_stacks_has_no_selections_by_line():
    view_model = ViewModel(profile([op(1, "f()", 0, 9, op_type="line", cell="In[1]", line=1)]))
    assert set(breakdown_table(view_model, "line")["selections"]) <= {None}


@pytest.mark.parametrize("max_nodes", [1, 3, 100])
@pytest.mark.parametrize("by", ["stack_tree", "full_stack_tree"])
def test_each_stack_belongs_to_a_node_of_the_icicle(by, max_nodes):
    view_model = nested(with_cell=False)
    tree = icicle(view_model, by, max_nodes=max_nodes)
    below = [set() for _ in tree["parent"]]
    for stack, node in zip(tree["stack_id"], tree["stack_node"], strict=True):
        at = node
        while at >= 0:
            below[at].add(stack)
            at = tree["parent"][at]
    assert below[0] == {4, 5, 6, 7, None}
    leaves = {*DEVICE_KINDS, "other"}
    for node, stacks in enumerate(below):
        if tree["names"][tree["level"][node]] in leaves:
            continue
        query = {"prefix": "act", "equals": {"stack_id": sorted(stacks, key=str)}}
        assert _device_ns(view_model, query) == tree["device_ns"][node], node


def test_frames_have_the_text_of_their_lines():
    view_model = nested(with_cell=False)
    view_model.profile.sources["a.py"] = "\nf()\n" + "x" * 400
    tree = icicle(view_model, "stack_tree")
    texts = [tree["names"][code] if code >= 0 else "" for code in tree["text"]]
    lines = dict(zip(tree["line"], texts, strict=True))
    assert lines[2] == "f()"
    assert len(lines[3]) <= 160
    assert lines[7] == lines[-1] == ""
