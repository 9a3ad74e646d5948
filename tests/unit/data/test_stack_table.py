"""The table of a profile's stacks: what it leaves out, and what refers to it."""

import numpy as np
import pytest

from epprof_nb.data.schema import MISSING
from epprof_nb.data.stack_table import check_stacks, stack_table, with_stack_rows
from tests.helpers import tiny
from tests.helpers.walked_stacks import Walker, stack_rows, with_stacks


def walked():
    walker = Walker()

    def inner():
        return walker.walk(), walker.walk()

    return walker, inner()


def test_a_walk_has_the_frames_of_the_running_functions():
    walker, (one, two) = walked()
    frames = walker.stacks().frames(one)
    assert [frame.function for frame in frames[:2]] == ["walked.<locals>.inner", "walked"]
    assert frames[0].file == __file__
    assert one == two


def test_frames_without_an_owner_are_left_out_and_their_callers_take_their_place():
    walker = Walker()
    start = walker.add([("runpy.py", "run", 1, 1)])
    main = walker.add([("runpy.py", "run", 1, 1), ("a.py", "main", 4, 3)])
    wrapped = walker.add([
        ("runpy.py", "run", 1, 1), ("a.py", "main", 4, 3), ("wrap.py", "call", 9, 8),
        ("b.py", "f", 2, 1),
    ])  # fmt: skip
    stacks = walker.stacks()
    owners = {"runpy.py": None, "wrap.py": None, "a.py": "cell", "b.py": "own"}
    files = [file.replace("a.py", "In[1]") for file in stacks.file]
    of_code = [owners[file] or "" for file in stacks.file]
    is_kept = np.array(["", *of_code], object)[stacks.code_id + 1] != ""
    table, row = stack_table(stacks, files, of_code, is_kept)
    frame = table.to_frame()
    assert frame["file"].tolist() == ["In[1]", "b.py"]
    assert frame["function"].tolist() == ["main", "f"]
    assert frame["owner"].tolist() == ["cell", "own"]
    assert frame["line"].tolist() == [4, 2]
    assert frame["first_line"].tolist() == [3, 1]
    assert table["parent_id"].tolist() == [MISSING, 0]
    assert (row[start], row[main], row[wrapped], row[-1]) == (MISSING, 0, 1, MISSING)
    assert frame["parent_id"].dtype == "Int32"


def test_references_follow_the_rows_and_a_lost_one_has_no_source():
    prof = tiny.profile(
        activities=[
            tiny.kernel(0, 1, stack_id=0, stack_source="exact"),
            tiny.kernel(1, 2, stack_id=1, stack_source="near", capture_stack_id=0),
            tiny.kernel(2, 3),
        ],
        api_calls=[tiny.call(0, 1, stack_id=1, stack_source="exact")],
    )
    changed = with_stack_rows(prof.tables, np.array([MISSING, 7, MISSING], np.int32))
    activities = changed["activities"].to_frame()
    assert changed["activities"]["stack_id"].tolist() == [MISSING, 7, MISSING]
    assert activities["stack_source"].isna().tolist() == [True, False, True]
    assert activities["capture_stack_id"].isna().all()
    assert changed["api_calls"]["stack_id"].tolist() == [7]
    assert changed["ops"] is prof.tables["ops"]


@pytest.mark.parametrize(
    ("rows", "stack_id", "message"),
    [
        ([{"stack_id": 1, "parent_id": -1}], -1, "not their rows"),
        ([{"stack_id": 0, "parent_id": 0}], -1, "does not precede"),
        ([{"stack_id": 0, "parent_id": -2}], -1, "does not precede"),
        ([{"stack_id": 0, "parent_id": -1}], 1, "activities.stack_id"),
        ([], 0, "activities.stack_id"),
        ([], -2, "activities.stack_id"),
    ],
)
def test_stacks_that_no_recording_contains_are_refused(rows, stack_id, message):
    prof = with_stacks(tiny.profile(activities=[tiny.kernel(0, 1, stack_id=stack_id)]), rows)
    with pytest.raises(ValueError, match=message):
        check_stacks(prof.tables)


def test_a_profile_shows_its_stacks_and_says_why_there_are_none():
    rows, _ = stack_rows("In[1]:2 model.py:f:7", "In[1]:2 lib/nn.py:g:3")
    prof = with_stacks(tiny.profile(), rows)
    check_stacks(prof.tables)
    assert prof.stacks.index.name == "stack_id"
    assert prof.stacks["parent_id"].fillna(-1).tolist() == [-1, 0, 0]
    assert prof.stacks["owner"].tolist() == ["cell", "own", "library"]
    assert "No Python stack" in tiny.profile(activities=[tiny.kernel(0, 1)]).stacks.attrs["note"]
