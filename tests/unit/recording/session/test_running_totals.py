"""Running totals of batches: time per op, from samples of large batches."""

from types import SimpleNamespace

import numpy as np
import pytest

from epprof_nb.data.schema import ACTIVITIES
from epprof_nb.recording.native_columns import OP_NAME
from epprof_nb.recording.session.ops_table import RANGE
from epprof_nb.recording.session.running_totals import RunningTotals
from tests.helpers.tiny import kernel, table


def batch(op, kernels, length, at):
    """Kernels of one op, one after the other, each launched by a call of its own."""
    first = op * 100_000 + 1
    rows = [
        kernel(at + i * length, at + (i + 1) * length, correlation_id=first + i)
        for i in range(kernels)
    ]
    return SimpleNamespace(
        ops={
            "lost": 0, "op_names": ["many", "few"],
            "op_id": np.array([op], np.uint64).tobytes(),
            "name_id": np.array([OP_NAME | (op - 1)], np.uint32).tobytes(),
            "parent_op_id": np.zeros(1, np.uint64).tobytes(),
            "category": np.array([RANGE], np.uint16).tobytes(),
        },
        launches={
            "lost": 0,
            "correlation_id": np.arange(first, first + kernels, dtype=np.uint64).tobytes(),
            "op_id": np.full(kernels, op, np.uint64).tobytes(),
            "flags": np.zeros(kernels, np.uint16).tobytes(),
        },
        outputs=[SimpleNamespace(activities=table(ACTIVITIES, rows), dropped=0, calls=None)],
    )  # fmt: skip


@pytest.mark.parametrize("many", [4_000, 20_000])
def test_sampled_batches_count_for_all_their_activities(many):
    totals = RunningTotals(0)
    totals.add(batch(1, many, 10, at=0))
    totals.add(batch(2, 100, many // 30, at=10 * many))
    progress = totals.progress(20 * many)
    of_few = 100 * (many // 30)
    assert (progress.kernels, progress.copies, progress.dropped) == (many + 100, 0, 0)
    assert progress.busy == (10 * many + of_few) / (20 * many)
    assert [name for name, _ in progress.top] == ["many", "few"]
    shares = [share for _, share in progress.top]
    assert shares == pytest.approx(np.array([10 * many, of_few]) / (10 * many + of_few))
