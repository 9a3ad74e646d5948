"""Host time of functions and lines, by samples."""

import pytest

import epprof_nb
from epprof_nb.analysis.breakdowns.by_function import NO_FUNCTION
from epprof_nb.data.schema import HOST_SAMPLES, MISSING
from epprof_nb.views.queries.tables import available_breakdowns, breakdown_table
from epprof_nb.views.view_model import ViewModel
from tests.helpers import tiny
from tests.helpers.tiny import call, kernel, line, op, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks

TEXTS = (
    "In[1]:2 data.py:augment:12",
    "In[1]:2 data.py:augment:14 data.py:augment:12",
    "In[1]:3 data.py:load:5 lib/np.py:sort:9",
    "lib/run.py:run:1",
    "In[1]:4",
)
AUGMENT, RECURSIVE, LOAD, LIBRARY, CELL = range(len(TEXTS))


def sampled(*samples, ops=(), activities=(), calls=()):
    """A profile with samples (index of a stack, weight)."""
    rows, ids = stack_rows(*TEXTS)
    activities, calls = (
        [
            {**given, "stack_id": ids[given["stack_id"]]} if "stack_id" in given else given
            for given in rows
        ]
        for rows in (activities, calls)
    )
    sources = {"data.py": "\n" * 11 + "x = flip(x)\n", "In[1]": "a\nb\nc\nd\n"}
    made = profile(ops, activities, calls, info={"cell": "In[1]"}, sources=sources)
    found = with_stacks(made, rows)
    found.tables["host_samples"] = tiny.table(
        HOST_SAMPLES,
        [
            {"start_ns": time, "stack_id": MISSING if stack is None else ids[stack],
             "interval_ns": weight, "thread_id": 1}
            for time, (stack, weight) in enumerate(samples)
        ],
    )  # fmt: skip
    return found


EVERY = [(AUGMENT, 10), (RECURSIVE, 20), (LOAD, 50), (LIBRARY, 5), (CELL, 7), (None, 3)]


def rows_of(frame, *columns):
    return [tuple(row) for row in frame[list(columns)].itertuples(index=False)]


def test_functions_by_their_own_time():
    frame = sampled(*EVERY).by_function()
    assert rows_of(frame, "function", "sampled_ns", "self_sampled_ns", "samples") == [
        ("load", 50, 50, 1),
        ("augment", 30, 30, 2),  # once, although it calls itself
        ("<module>", 87, 7, 1),
        (NO_FUNCTION, 8, 8, 2),
    ]
    assert frame["line"].tolist()[:3] == [5, 12, 4]
    assert frame["line"].isna().tolist() == [False, False, False, True]
    assert frame["source"].tolist() == ["", "x = flip(x)", "d", ""]
    assert frame["file"].tolist()[:3] == ["data.py", "data.py", "In[1]"]
    assert frame["self_share"].sum() == pytest.approx(1)


def test_lines_of_functions():
    frame = sampled(*EVERY).by_function(lines=True)
    assert rows_of(frame.iloc[:-1], "function", "line", "sampled_ns", "self_sampled_ns") == [
        ("load", 5, 50, 50),
        ("augment", 12, 30, 30),
        ("<module>", 4, 7, 7),
        ("<module>", 3, 50, 0),
        ("<module>", 2, 30, 0),
        ("augment", 14, 20, 0),
    ]
    assert frame["self_sampled_ns"].sum() == 95


def test_functions_of_libraries_have_rows_on_request():
    frame = sampled(*EVERY).by_function(library=True).set_index("function")
    assert frame["self_sampled_ns"].to_dict() == {
        "sort": 50, "augment": 30, "<module>": 7, "run": 5, "load": 0, NO_FUNCTION: 3,
    }  # fmt: skip
    assert frame["sampled_ns"]["load"] == 50


def test_a_profile_without_samples_has_no_rows_and_says_why():
    frame = sampled().by_function()
    assert len(frame) == 0
    assert frame.columns.tolist() == sampled(*EVERY).by_function().columns.tolist()
    assert "--no-samples" in frame.attrs["note"]
    assert len(profile().by_function()) == 0


def test_lines_that_launched_have_the_time_of_what_they_called():
    ops = [op(1, "In[1]", 0, 90, op_type="cell"), line(2, 2, 0, 40, 1, cell="In[1]")]
    work = [kernel(50, 60, 1, stack_id=LOAD, correlation_id=1), kernel(70, 80, 1, stack_id=CELL)]
    prof = sampled(*EVERY, ops=ops, activities=work, calls=[call(1, 2, correlation_id=1)])
    assert rows_of(prof.by_line(), "cell", "line", "sampled_ns") == [
        ("In[1]", 2, 30),  # augment launched nothing and has no row
        ("In[1]", 3, 50),
        ("In[1]", 4, 7),
        ("data.py", 5, 50),
    ]
    own = prof.by_line(inclusive=False)
    assert own["self_sampled_ns"].tolist() == [30, 0, 7, 50]


def test_lines_that_only_waited_have_their_own_time():
    prof = sampled(*EVERY, calls=[call(1, 2, name="cuStreamSynchronize", stack_id=AUGMENT)])
    assert rows_of(prof.by_line(inclusive=False), "line", "self_waits", "self_sampled_ns") == [
        (2, 0, 0), (12, 1, 30),
    ]  # fmt: skip


def test_lines_of_a_profile_without_samples_have_no_sampled_time():
    ops = [op(1, "In[1]", 0, 90, op_type="cell"), line(2, 2, 0, 40, 1, cell="In[1]")]
    prof = sampled(ops=ops, activities=[kernel(50, 60, 2)])
    assert prof.by_line()["sampled_ns"].isna().all()
    assert prof.by_line(inclusive=False)["self_sampled_ns"].isna().all()
    prof.info["samples"] = {"interval_ns": 1_000_000}  # recorded, but the cell was too short
    assert prof.by_line()["sampled_ns"].tolist() == [0]


def test_the_view_has_a_table_of_functions_if_there_are_samples():
    view = ViewModel(sampled(*EVERY))
    assert "function" in available_breakdowns(view)
    columns = {c["name"]: c["values"] for c in breakdown_table(view, "function")["columns"]}
    assert columns["self_sampled_ns"] == [50, 30, 7, 8]
    assert "function" not in available_breakdowns(ViewModel(sampled()))


def test_the_sums_are_those_of_the_samples_of_a_program():
    def squares():
        return sum(i * i for i in range(2_000_000))

    with epprof_nb.profile() as prof:
        squares()
    frame, samples = prof.by_function(), prof.host_samples
    if not len(samples):
        pytest.skip("the host cannot be sampled")
    assert frame["self_sampled_ns"].sum() == samples["interval_ns"].sum()
    assert frame["samples"].sum() == len(samples)
    names = frame["function"].astype(str)
    [whole] = frame["sampled_ns"][names.str.endswith(".squares")]
    [loop] = frame["self_sampled_ns"][names.str.endswith(".squares.<locals>.<genexpr>")]
    assert whole >= loop
