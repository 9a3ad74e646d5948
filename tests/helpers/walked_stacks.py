"""Python stacks built frame by frame: by hand, or from the frames of running code."""

import sys

import numpy as np

from epprof_nb.data.python_stacks import PythonStacks
from tests.helpers import tiny


class Walker:
    """A calling-context tree that grows by walks over frames, as a recording's does."""

    def __init__(self):
        self._stacks = {}
        self._codes = {}

    def add(self, frames):
        """Return the stack of (file, function, line, first line), outermost first."""
        stack = -1
        for file, function, line, first in frames:
            code = self._codes.setdefault((file, function, first), len(self._codes))
            stack = self._stacks.setdefault((stack, code, line), len(self._stacks))
        return stack

    def walk(self, depth=1):
        """Return the stack of the function that calls this."""
        frame, frames = sys._getframe(depth), []
        while frame is not None:
            code = frame.f_code
            place = (code.co_filename, code.co_qualname, frame.f_lineno, code.co_firstlineno)
            frames.append(place)
            frame = frame.f_back
        return self.add(reversed(frames))

    def stacks(self):
        parent, code, line = np.array(list(self._stacks), np.int32).reshape(-1, 3).T
        files, functions, first = zip(*self._codes, strict=True) if self._codes else ((), (), ())
        return PythonStacks(parent, code, line, files, functions, np.array(first, np.int32))


def stack_rows(*stacks):
    """The rows of a table of stacks, from texts such as "In[1]:2 a.py:f:7" (outermost first).

    Files of a folder "lib" are a library's. The last stack ends with the last row; the ids of all
    are returned, too.
    """
    rows, ids = {}, []
    for text in stacks:
        at = -1
        for frame in text.split():
            file, *function, line = frame.split(":")
            name = function[0] if function else "<module>"
            at = rows.setdefault((at, file, name, int(line)), len(rows))
        ids.append(at)
    owners = {True: "library", False: "own"}
    found = [
        {
            "stack_id": number, "parent_id": parent, "file": file, "function": name, "line": line,
            "first_line": 1,
            "owner": "cell" if file.startswith("In[") else owners[file.startswith("lib/")],
        }
        for (parent, file, name, line), number in rows.items()
    ]  # fmt: skip
    return found, ids


def with_stacks(profile, rows):
    """A hand-made profile with these rows of stacks."""
    profile.tables["stacks"] = tiny.table(profile.tables["stacks"].schema, rows)
    return profile
