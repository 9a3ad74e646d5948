"""Resolution: one tree of stacks from what all threads logged."""

import numpy as np

from epprof_nb.recording.stacks.resolution import resolve


def drained(stacks, codes, **counts):
    """As the native core returns it.

    Stacks have an id, a parent, a code and a line; codes an id, a first line, a file and a name.
    """

    def column(rows, i, dtype):
        return np.array([row[i] for row in rows], dtype).tobytes()

    texts = [[code[i].encode("utf-8", "surrogatepass") for code in codes] for i in (2, 3)]
    return {
        "stack_id": column(stacks, 0, np.int32),
        "parent_id": column(stacks, 1, np.int32),
        "stack_code_id": column(stacks, 2, np.int32),
        "line": column(stacks, 3, np.int32),
        "code_id": column(codes, 0, np.int32),
        "first_line": column(codes, 1, np.int32),
        "file_bytes": np.array([len(text) for text in texts[0]], np.uint32).tobytes(),
        "function_bytes": np.array([len(text) for text in texts[1]], np.uint32).tobytes(),
        "files": b"".join(texts[0]),
        "functions": b"".join(texts[1]),
        "truncated": 0,
        "dropped": 0,
    } | counts


CODES = [(0, 1, "a.py", "main"), (1, 5, "b.py", "step"), (2, 5, "b.py", "step")]


def lines(resolved, native_id):
    row = resolved.rows(np.array([native_id]))[0]
    return [(frame.function, frame.line) for frame in resolved.stacks.frames(row)]


def test_instructions_and_threads_that_share_a_line_share_a_stack():
    # Two instructions of line 7; another thread's copy of the code.
    log = drained([(0, -1, 0, 3), (1, 0, 1, 7), (2, 0, 1, 7), (3, 0, 2, 7), (4, 0, 2, 8)], CODES)
    found = resolve([log], [np.array([1, 2, 3, 4])])
    assert found.rows(np.array([1, 2, 3])).tolist() == [1, 1, 1]
    assert lines(found, 4) == [("step", 8), ("main", 3)]
    assert len(found.stacks) == 3
    assert found.stacks.function == ("main", "step")


def test_only_stacks_that_are_used_and_their_callers_are_kept():
    log = drained([(0, -1, 0, 3), (1, 0, 1, 7), (2, -1, 0, 4), (3, 2, 1, 9)], CODES)
    found = resolve([log], [np.array([3, -1, 3])])
    assert lines(found, 3) == [("step", 9), ("main", 4)]
    assert found.rows(np.array([0, 1, -1])).tolist() == [-1, -1, -1]
    assert len(found.stacks) == 2


def test_frames_without_a_line_are_left_out():
    log = drained([(0, -1, 0, 3), (1, 0, 0, -1), (2, 1, 1, 7), (3, -1, 0, -1)], CODES)
    found = resolve([log], [np.array([2, 3])])
    assert lines(found, 2) == [("step", 7), ("main", 3)]
    assert found.rows(np.array([3])).tolist() == [-1]


def test_a_caller_may_have_been_logged_before():
    first = drained([(0, -1, 0, 3)], CODES[:1])
    later = drained([(1, 0, 1, 7)], CODES[1:], truncated=2, dropped=1)
    found = resolve([first, later], [np.array([1])])
    assert lines(found, 1) == [("step", 7), ("main", 3)]
    assert (found.stacks.truncated, found.stacks.dropped) == (2, 1)


def test_names_need_not_be_text():
    log = drained([(0, -1, 0, 3)], [(0, 1, "\udcff.py", "n\xe4me")])
    stacks = resolve([log], [np.array([0])]).stacks
    assert (stacks.file, stacks.function) == (("\\udcff.py",), ("n\xe4me",))


def test_nothing_was_logged():
    found = resolve([], [np.array([-1, -1])])
    assert len(found.stacks) == 0
    assert found.rows(np.array([-1])).tolist() == [-1]
