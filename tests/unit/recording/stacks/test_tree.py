"""Stacks of one recording in the tree of another."""

from epprof_nb.recording.stacks.tree import StackTree

CALLS = ["train", "step", "forward", "linear"]


def add(tree, *functions):
    row = -1
    for line, function in enumerate(functions, 1):
        row = tree.add(row, ("model.py", function, 1), line)
    return row


def functions(stacks, row):
    return [frame.function for frame in stacks.frames(row)][::-1]


def test_stacks_with_callers_that_are_known_get_the_same_frames():
    """Rows of the two trees differ, so a caller that was added before has another number."""
    source, target = StackTree(), StackTree()
    add(source, "other", "work")
    rows = [add(source, *CALLS[:2]), add(source, *CALLS), add(source, "train", "evaluate")]
    add(target, *(f"earlier_{i}" for i in range(9)))
    found = target.graft(source.stacks(), rows)
    grafted = target.stacks()
    assert [functions(grafted, found[row]) for row in rows] == [
        CALLS[:2], CALLS, ["train", "evaluate"],
    ]  # fmt: skip
