"""Python stacks: a tree of frames."""

import numpy as np
import pytest

from epprof_nb.data import python_stacks
from epprof_nb.data.python_stacks import PythonStacks, StackFrame


def column(*values):
    return np.array(values, np.int32)


def tree(**changed):
    columns = {
        "parent_id": column(-1, 0, 0),
        "code_id": column(0, 1, 1),
        "line": column(9, 3, 4),
        "file": ("train.py", "model.py"),
        "function": ("train", "Model.forward"),
        "first_line": column(7, 1),
    }
    return PythonStacks(**(columns | changed))


def test_the_frames_of_a_stack_begin_with_the_innermost():
    outer = StackFrame("train.py", "train", 9, 7)
    assert tree().frames(2) == [StackFrame("model.py", "Model.forward", 4, 1), outer]
    assert tree().frames(0) == [outer]
    assert tree().frames(-1) == []


def test_there_may_be_no_stacks():
    assert len(PythonStacks()) == 0
    assert len(tree()) == 3


@pytest.mark.parametrize(
    "changed",
    [
        {"line": column(1)},
        {"function": ("f",)},
        {"parent_id": column(-1, 1, 0)},
        {"parent_id": column(-2, 0, 0)},
        {"code_id": column(0, 1, 2)},
        {"code_id": column(0, 1, -1)},
    ],
)
def test_columns_that_do_not_fit_are_refused(changed):
    with pytest.raises(ValueError, match=r"differ in length|has to precede|unknown code"):
        tree(**changed)


def test_each_source_has_the_code_of_its_position():
    assert python_stacks.SOURCES[python_stacks.EXACT] == "exact"
    assert python_stacks.SOURCES[python_stacks.NEAR] == "near"
    assert python_stacks.SOURCES[python_stacks.OP] == "op"
    assert python_stacks.SOURCES[python_stacks.REPLAY] == "replay"
