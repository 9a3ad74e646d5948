"""Samples of the host, joined with intervals of time."""

import numpy as np
import pandas as pd
import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.host_code_name import host_code_name
from epprof_nb.analysis.utilisation.sampled_host import (
    functions_of_host,
    host_activity,
    main_place,
)
from epprof_nb.data.schema import HOST_SAMPLES
from tests.helpers import tiny
from tests.helpers.planted import MS, info, of_kind
from tests.helpers.tiny import call, kernel, op, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks

TEXTS = (
    "In[1]:2 data.py:augment:12",
    "In[1]:2 data.py:augment:14",
    "In[1]:3 data.py:augment:12 lib/np.py:sort:9",
    "In[1]:3 lib/np.py:sort:9",
    "lib/run.py:run:1",
)
A, B, A_IN_LIBRARY, CELL, LIBRARY = range(len(TEXTS))


def sampled(samples, ops=(), activities=(), calls=(), wall=100 * MS):
    """A profile with samples (time, index of a stack, weight, thread)."""
    rows, ids = stack_rows(*TEXTS)
    found = with_stacks(profile(ops, activities, calls, info=info(wall, cell="In[1]")), rows)
    found.tables["host_samples"] = tiny.table(
        HOST_SAMPLES,
        [
            {"start_ns": time, "stack_id": ids[stack], "interval_ns": weight, "thread_id": thread}
            for time, stack, weight, thread in samples
        ],
    )
    return found, ids


def whole():
    return np.array([0]), np.array([1000])


def test_lines_sum_up_by_weight_with_the_innermost_own_frame():
    samples = [(1, A, 10, 1), (2, B, 20, 1), (3, A_IN_LIBRARY, 50, 1), (4, CELL, 15, 1),
               (5, LIBRARY, 5, 1)]  # fmt: skip
    prof, ids = sampled(samples)
    found = host_activity(ProfileIndex(prof), *whole())
    assert found.share.tolist() == [0.6, 0.2, 0.15, 0.05]
    assert found.samples.tolist() == [2, 1, 1, 1]
    stacks = prof.stacks.loc[[stack for stack in found.stack.tolist() if stack >= 0]]
    assert list(zip(stacks["function"], stacks["line"], strict=True)) == [
        ("augment", 12), ("augment", 14), ("<module>", 3),
    ]  # fmt: skip
    assert found.stack[-1] == -1
    assert ids[CELL] not in found.stack.tolist()


def test_functions_are_shown_by_their_line_with_most_samples():
    samples = [(1, B, 60, 1), (2, A, 50, 1), (3, CELL, 90, 1), (4, A_IN_LIBRARY, 30, 1)]
    prof, _ = sampled(samples)
    found = functions_of_host(ProfileIndex(prof), *whole())
    assert found.samples.tolist() == [3, 1]
    assert found.share.tolist() == pytest.approx([140 / 230, 90 / 230])
    assert prof.stacks.loc[found.stack.tolist(), "line"].tolist() == [12, 3]
    assert host_code_name(ProfileIndex(prof), int(found.stack[0])) == "`augment` (data.py:12)"
    assert host_code_name(ProfileIndex(prof), int(found.stack[1])) == "line 3"
    assert host_code_name(ProfileIndex(prof), -1) == ""


def test_only_samples_of_the_intervals_and_the_main_thread_count():
    samples = [(5, A, 1, 1), (10, B, 1, 1), (19, B, 1, 1), (20, A, 1, 1), (15, CELL, 1, 2)]
    prof, _ = sampled(samples, [op(1, "x", 0, 50), op(2, "y", 0, 40, thread_id=2)])
    index = ProfileIndex(prof)
    starts, ends = np.array([12, 10]), np.array([20, 14])
    assert host_activity(index, starts, ends).samples.tolist() == [2]
    assert host_activity(index, starts[:0], ends[:0]).samples.tolist() == []


def test_threads_that_launch_go_before_those_with_ops():
    samples = [(5, A, 1, 1), (6, B, 1, 2), (7, B, 1, 2)]
    ops = [op(1, "x", 0, 50), op(2, "y", 0, 4, thread_id=2)]
    prof, _ = sampled(samples, ops, [kernel(60, 70, 2, thread_id=2)])
    assert host_activity(ProfileIndex(prof), *whole()).samples.tolist() == [2]
    prof, _ = sampled(samples, ops)
    assert host_activity(ProfileIndex(prof), *whole()).samples.tolist() == [1]
    prof, _ = sampled(samples)
    assert host_activity(ProfileIndex(prof), *whole()).samples.tolist() == [2, 1]


def test_the_place_of_each_interval_is_that_of_its_thread():
    samples = [(1, A, 5, 1), (2, B, 9, 1), (3, A, 5, 1), (11, LIBRARY, 9, 1), (12, A, 5, 1),
               (2, CELL, 99, 2), (31, CELL, 1, 2)]  # fmt: skip
    prof, _ = sampled(samples)
    stack, counts = main_place(
        ProfileIndex(prof), np.array([1, 2, 1, 1]), np.array([20, 30, 0, 10]),
        np.array([29, 40, 10, 20]),
    )  # fmt: skip
    assert counts.tolist() == [0, 1, 3, 2]
    assert stack[[0, 3]].tolist() == [-1, -1]
    assert prof.stacks.loc[stack[[1, 2]].tolist(), "line"].tolist() == [3, 12]


def rounds(samples):
    """A kernel of 1 ms each 10 ms, launched by thread 1."""
    work, calls = [], []
    for i in range(10):
        start = (10 * i + 9) * MS
        work.append(kernel(start, start + MS, correlation_id=i, thread_id=1))
        calls.append(call(start - 1000, start, correlation_id=i))
    return sampled(samples, (), work, calls)[0]


def test_gaps_tell_what_the_host_ran():
    prof = rounds([(12 * MS, A, 4, 1), (13 * MS, B, 3, 1), (25 * MS, CELL, 3, 1),
                   (35 * MS, CELL, 3, 2), (19 * MS, B, 90, 1)])  # fmt: skip
    gaps = prof.gaps().query("position == 'between'").reset_index(drop=True)
    assert gaps["host_function"].tolist()[:2] == ["augment", "<module>"]
    assert gaps["host_file"].tolist()[:2] == ["data.py", "In[1]"]
    assert gaps["host_line"].tolist()[:2] == [12, 3]
    assert gaps["host_samples"].tolist() == [2, 1, 0, 0, 0, 0, 0, 0, 0]
    assert pd.isna(gaps["host_function"].iloc[2])


def test_findings_of_idle_time_name_the_function():
    samples = [((10 * i + 5) * MS, B if i == 3 else A, 3, 1) for i in range(10)]
    (found,) = (f for f in of_kind(rounds(samples), "idle") if "gaps" in f.text)
    assert "while the host ran `augment` (data.py:12)." in found.text
    # Too few, and no main function.
    mixed = [(time, (A, CELL, LIBRARY)[i % 3], 3, 1) for i, (time, *_) in enumerate(samples)]
    for some in (samples[:2], mixed):
        texts = [f.text for f in of_kind(rounds(some), "idle")]
        assert not any("augment" in text for text in texts)


def test_a_profile_without_samples_has_gaps_as_before():
    gaps = rounds([]).gaps()
    assert gaps["host_function"].isna().all()
    assert gaps["host_samples"].isna().all()
