"""Sums over ops of activities in pieces are those of the whole table."""

from __future__ import annotations

import numpy as np
import pytest
from pandas.testing import assert_frame_equal

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.base.index_in_pieces import IndexInPieces, NotInOnePassError
from epprof_nb.analysis.breakdowns.by_op import op_table
from epprof_nb.analysis.ranks.task_totals import task_table, task_times
from epprof_nb.data.profile_data import ProfileData
from tests.helpers.tiny import activity, kernel, op, profile


def random_profile(numbers):
    """Work of two devices that overlaps, under tasks on two threads, and under none."""
    ops, rows, start = [], [], 0
    for number in range(int(numbers.integers(1, 12))):
        begin = int(numbers.integers(0, 900))
        end = begin + int(numbers.integers(0, 300))
        name, thread = str(numbers.choice(["load", "sum"])), int(numbers.integers(2))
        ops.append(op(2 * number, name, begin, end, op_type="task", thread_id=thread))
        ops.append(op(2 * number + 1, "inner", begin, end, 2 * number, thread_id=thread))
    for _ in range(int(numbers.integers(1, 60))):
        start += int(numbers.integers(0, 40))
        rows.append(
            activity(
                str(numbers.choice(["kernel", "memcpy", "memset", "synchronization"])),
                start, start + int(numbers.integers(0, 200)),
                int(numbers.integers(-1, len(ops))), device_id=int(numbers.choice([-1, 0, 5])),
                bytes=int(numbers.integers(-1, 9)),
            )
        )  # fmt: skip
    return profile(ops, rows, info={"wall_ns": start + 300})


def in_pieces(prof, sizes):
    activities, ops = prof.tables["activities"], prof.tables["ops"]
    bounds = np.cumsum([0, *sizes])
    pieces = [
        activities.take(np.arange(low, min(high, len(activities))))
        for low, high in zip(bounds, [*bounds[1:], len(activities)], strict=True)
    ]
    return IndexInPieces(ProfileData({"ops": ops}, prof.info), pieces, task_times(ops))


@pytest.mark.parametrize("seed", range(20))
def test_pieces_of_any_size_have_the_sums_of_the_whole(seed):
    numbers = np.random.default_rng(seed)
    prof = random_profile(numbers)
    whole, found = ProfileIndex(prof), in_pieces(prof, numbers.integers(0, 9, 8))
    for table in (op_table, task_table):
        assert_frame_equal(table(found).to_frame(), table(whole).to_frame())


def test_what_needs_all_activities_at_once_is_refused():
    task = [op(0, "load", 0, 50, op_type="task")]
    with pytest.raises(NotInOnePassError, match="order"):
        in_pieces(profile(task, [kernel(5, 9), kernel(2, 4)]), [1])
    with pytest.raises(NotInOnePassError, match="graph launch"):
        in_pieces(profile(task, [activity("graph_launch", 0, 9)]), [])
    with pytest.raises(NotInOnePassError, match="op of the launch"):
        in_pieces(profile(task), []).op_sums("capture")
