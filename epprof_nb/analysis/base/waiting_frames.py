"""Frames of the standard library that wait for a thread or a process, by samples."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.stack_lines import StackLines, short_function

if TYPE_CHECKING:
    from collections.abc import Collection

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray

FOR_THREADS = {
    ("threading.py", "Condition.wait"),
    ("threading.py", "Thread._wait_for_tstate_lock"),
    ("threading.py", "Thread.join"),
}
"""File and function of frames that call no others and wait for a thread."""
_FOR_FILES = {
    ("selectors.py", "_PollLikeSelector.select"),
    ("selectors.py", "SelectSelector._select"),
}
OF_EVENT_LOOPS = _FOR_FILES | {
    ("selectors.py", "EpollSelector.select"),
    ("selectors.py", "KqueueSelector.select"),
}
"""The same for frames that wait for files, for a time, and for what other threads write."""
FOR_PROCESSES = {
    ("subprocess.py", "Popen._try_wait"),
    ("popen_fork.py", "Popen.poll"),
    ("connection.py", "Connection._recv"),
    ("synchronize.py", "Condition.wait"),
}
"""The same for processes."""
FOR_ANYTHING = FOR_THREADS | _FOR_FILES | FOR_PROCESSES
"""The same for threads, processes and files."""


def waiting_stacks(index: ProfileIndex, frames: Collection[tuple[str, str]]) -> BoolArray:
    """Return which rows of ``stacks`` have one of these frames, by base name and function.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import index_of
    >>> from epprof_nb.testing import synthetic_profile
    >>> waiting_stacks(index_of(synthetic_profile()), FOR_THREADS).any().item()
    False
    """
    lines = index.cached(StackLines)
    files = np.array([PurePath(file).name for file in lines.file.categories] + [""])
    names = np.array([short_function(name) for name in lines.function.categories] + [""])
    found = np.zeros(len(lines), np.bool_)
    for file, name in frames:
        found |= (files == file)[lines.file.codes] & (names == name)[lines.function.codes]
    return found


def waiting_samples(index: ProfileIndex, frames: Collection[tuple[str, str]]) -> BoolArray:
    """Return which rows of ``host_samples`` are in one of these frames, as `waiting_stacks`.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import index_of
    >>> from epprof_nb.testing import synthetic_profile
    >>> waiting_samples(index_of(synthetic_profile()), FOR_THREADS).any().item()
    False
    """
    stack = index.profile.tables["host_samples"]["stack_id"]
    found: BoolArray = np.append(waiting_stacks(index, frames), False)[stack]
    return found
