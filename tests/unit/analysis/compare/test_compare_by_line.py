"""Comparison by line: device time of the user's code, wherever the lines are now."""

import numpy as np
import pytest

import epprof_nb
from epprof_nb import compare, host
from epprof_nb.data.names import CategoryColumn
from epprof_nb.recording.stacks import availability
from tests.helpers.repeated import MS, TIMES, repeated
from tests.helpers.tiny import rows
from tests.helpers.walked_stacks import stack_rows, with_stacks

CELL = "load(x)\ny = model(x)\ny.sum()"


def recorded(text, numbers, *, file="model.py", cell="In[1]", times=TIMES, seed=0):
    """A recording whose kernels were launched at lines of a file that statements of a cell call."""
    prof = repeated(times, seed=seed, cell=cell)
    stacks, ids = stack_rows(*(f"{cell}:{at} {file}:f:{n}" for at, n in enumerate(numbers, 1)))
    activities = prof.tables["activities"]
    stack = np.resize(np.array(ids, np.int32), len(activities))
    exact = CategoryColumn(np.zeros(len(activities), np.int32), ("exact",))
    prof.tables["activities"] = activities.replace(stack_id=stack, stack_source=exact)
    prof.sources.update({file: text, cell: CELL})
    return with_stacks(prof, stacks)


def moves(lines):
    """The old and the new number of each line."""
    return {name: (line["line_before"], line["line_after"]) for name, line in lines.items()}


OLD = "def f(x):\n    read(x)\n    x = layer(x)\n    add(x)\n"
NEW = "# moved\n\ndef f(x):\n    add(x)\n    x = layer(x)\n    read(x)\n"


def test_the_slower_line_is_named_where_it_is_now():
    slower = TIMES | {"y = model(x)": 12 * MS}
    result = compare(
        recorded(OLD, (2, 3, 4)),
        recorded(NEW, (6, 5, 4), times=slower, seed=1, file="/home/ada/model.py", cell="In[7]"),
    )
    lines = rows(result.lines, "source")
    assert list(lines) == ["x = layer(x)", "add(x)", "read(x)"]
    assert moves(lines) == {"read(x)": (2, 6), "x = layer(x)": (3, 5), "add(x)": (4, 4)}
    slow = lines["x = layer(x)"]
    assert (slow["verdict"], slow["function"], slow["cell"]) == (
        "slower",
        "f",
        "/home/ada/model.py",
    )
    assert slow["change_low"] < 0.2 < slow["change_high"]
    assert {lines[name]["verdict"] for name in ("add(x)", "read(x)")} == {"no difference found"}
    assert "Device time by line: `x = layer(x)` (f (model.py:5)) +2" in result.reason
    assert "\nf (model.py:5): x = layer(x)  " in repr(result)


def test_cells_match_whatever_their_number():
    text = "def f(x):\n    read(x)\n    read(x)\n    add(x)\n"
    old = recorded(text, (2, 3, 4), file="In[2]", cell="In[3]")
    new = recorded(text, (2, 3, 4), file="In[8]", cell="In[9]", seed=1)
    found = compare(old, new).lines
    assert found["status"].tolist() == ["matched"] * 3
    assert found["line_before"].tolist() == found["line_after"].tolist()
    assert set(found["cell"]) == {"In[8]"}


def test_lines_that_only_one_side_has():
    new = OLD.replace("add(x)", "mul(x)")
    result = compare(recorded(OLD, (2, 3, 4)), recorded(new, (2, 3, 4), seed=1))
    lines = rows(result.lines, "source")
    assert (lines["add(x)"]["status"], lines["mul(x)"]["status"]) == ("removed", "added")
    assert np.isnan(lines["mul(x)"]["change"])
    assert lines["add(x)"]["line_after"] is None or np.isnan(lines["add(x)"]["line_after"])
    assert "`mul(x)` (f (model.py:4)) +2" in result.reason


def test_without_stacks_lines_are_the_statements_and_not_named_twice():
    slower = TIMES | {"y = model(x)": 12 * MS}
    old, new = repeated(TIMES), repeated(slower, seed=1)
    result = compare(old, new)
    lines = rows(result.lines, "source")
    assert {name: line["verdict"] for name, line in lines.items()} == {
        "load(x)": "no difference found",
        "y = model(x)": "slower",
        "y.sum()": "no difference found",
    }
    assert "by line" not in result.reason
    assert "line  " not in repr(result)


PROGRAM = "def forward():\n    first()\n    second()\n\ndef first():\n    launch()\n"


@pytest.mark.skipif(availability.why_unavailable() is not None, reason="stacks cannot be read here")
def test_functions_that_moved_within_a_recorded_program(tmp_path):
    def recording(folder, text):
        path = tmp_path / folder / "program.py"
        path.parent.mkdir()
        path.write_text(text)
        names = {"launch": lambda: host.launch(int), "second": lambda: host.launch(float)}
        exec(compile(text, str(path), "exec"), names)
        with epprof_nb.profile(own=[str(path.parent)], library=[__file__]) as prof:
            for _ in range(10):
                epprof_nb.step()
                names["forward"]()
                host.synchronize()
        return prof

    parts = PROGRAM.split("\n\n")
    old, new = recording("old", PROGRAM), recording("new", "\n".join(reversed(parts)))
    lines = rows(compare(old, new, allow=["counts"]).lines, "source")
    assert moves(lines) == {"launch()": (6, 2), "second()": (3, 6)}
    assert {line["status"] for line in lines.values()} == {"matched"}
