"""Findings on data loaders."""

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.rules.idle_device.data_loaders import waiting_for_data
from epprof_nb.arrays.types import MISSING
from tests.helpers.tiny import kernel, line, profile
from tests.helpers.training import framework

MS = 1_000_000


def loop(*, workers=2, statement=True, busy_until=0, batches=3):
    """A loop that waits 8 of every 10 ms for a batch; kernels run for the other 2 ms."""
    ops = [line(1, 3, 0, 100 * MS)] if statement else []
    kernels = [kernel(0, busy_until)] if busy_until else []
    for number in range(batches):
        start = number * 10 * MS
        ops.append(
            framework(
                10 + number, "waiting for data", start, start + 8 * MS,
                1 if statement else MISSING, "data",
                args=None if workers is None else {"workers": workers},
            )
        )  # fmt: skip
        kernels.append(kernel(start + 8 * MS, start + 10 * MS))
    return profile(
        ops, kernels, info={"wall_ns": 100 * MS, "devices": [{"device_id": 0, "kind": "gpu"}]},
        sources={"In[1]": "x\ny\nfor batch in loader:\n"},
    )  # fmt: skip


def found(made):
    return [(f.text, f.gain_ns, f.start_ns, f.end_ns) for f in waiting_for_data(ProfileIndex(made))]


def test_idle_time_while_waiting_names_the_line_and_the_workers():
    ((text, *numbers),) = found(loop())
    assert text == (
        "GPU idle 24.0 ms while line 3 (`for batch in loader:`) waited for 3 batches of a data "
        "loader with 2 worker processes."
    )
    assert numbers == [24 * MS, 0, 8 * MS]


def test_only_idle_time_counts():
    ((text, gain, start, end),) = found(loop(busy_until=13 * MS, workers=0))
    assert (gain, start, end) == (13 * MS, 20 * MS, 28 * MS)
    assert text.endswith("with 0 worker processes.")


def test_a_loader_that_is_never_late_has_no_finding():
    assert found(loop(busy_until=100 * MS)) == []
    assert found(loop(batches=0)) == []


def test_without_a_line_and_workers():
    ((text, *_),) = found(loop(statement=False, workers=None))
    assert text == "GPU idle 24.0 ms while the code waited for 3 batches of a data loader."


def on_the_cpu(*, loading, training, workers=0, batches=10):
    ops = [line(1, 3, 0, batches * (loading + training))]
    for number in range(batches):
        start = number * (loading + training)
        ops.append(framework(10 + number, "waiting for data", start, start + loading, 1, "data",
                             args={"workers": workers}))  # fmt: skip
    wall = batches * (loading + training)
    return profile(ops, info={"wall_ns": wall, "load": {"cores": 8}},
                   sources={"In[1]": "x\ny\nfor batch in loader:\n"})  # fmt: skip


def test_without_device_work_all_waiting_counts():
    made = on_the_cpu(loading=40 * MS, training=12 * MS)
    (finding,) = waiting_for_data(ProfileIndex(made))
    assert finding.text == (
        "Line 3 (`for batch in loader:`) waited 400 ms (77 %) for 10 batches of a data loader "
        "with 0 worker processes."
    )
    assert "num_workers" in finding.remedy
    # Four processes load in 100 ms, beside the 120 ms of the training.
    assert finding.gain_ns == 400 * MS
    assert finding.low_ns == 60 * MS
    assert made.insights()["kind"].iloc[0] == "data loader"


def test_more_loading_than_the_training_hides_is_not_saved():
    (finding,) = waiting_for_data(ProfileIndex(on_the_cpu(loading=40 * MS, training=2 * MS)))
    assert finding.gain_ns == (400 - (100 - 20)) * MS
    (of_workers,) = waiting_for_data(
        ProfileIndex(on_the_cpu(loading=40 * MS, training=2 * MS, workers=3))
    )
    assert of_workers.gain_ns == 400 * MS
    assert of_workers.low_ns == 0
    assert "more worker processes" in of_workers.remedy


def test_a_loader_that_keeps_up_has_no_finding():
    assert found(on_the_cpu(loading=MS // 10, training=12 * MS)) == []
