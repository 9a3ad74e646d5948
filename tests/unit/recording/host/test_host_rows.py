"""Rows of the host device's log: their order, and columns that only some of them have."""

import pytest

from epprof_nb.core.options import Options
from epprof_nb.host._log import LOG, Activity, RecordedEvent
from epprof_nb.host.device import CONTEXT_ID
from epprof_nb.recording.host.recorder import HostRecorder


@pytest.fixture
def recorder():
    recorder = HostRecorder()
    recorder.start(Options())
    yield recorder
    recorder.stop()


def copy(correlation_id, size):
    return Activity("memcpy", "copy", correlation_id, 3, size, "HtoD", "pageable", "device")


def kernel(correlation_id, **more):
    return Activity("kernel", f"k{correlation_id}", correlation_id, 3, **more)


@pytest.mark.parametrize("with_copy", [False, True])
def test_rows_are_in_the_order_of_their_starts(with_copy, recorder):
    LOG.add(kernel(1), 10, 12)
    LOG.add(kernel(2), 20, 29)
    LOG.add(kernel(3), 40, 42)
    LOG.add(kernel(4), 30, 35)
    if with_copy:
        LOG.add(copy(5, 64), 25, 28)
    table = recorder.drain().activities
    order = [1, 2, 5, 4, 3] if with_copy else [1, 2, 4, 3]
    assert table["correlation_id"].tolist() == order
    assert table["start_ns"].tolist() == sorted(table["start_ns"].tolist())
    assert table["duration_ns"].tolist() == ([2, 9, 3, 5, 2] if with_copy else [2, 9, 5, 2])
    names = ["k1", "k2", "copy", "k4", "k3"] if with_copy else ["k1", "k2", "k4", "k3"]
    assert table.names("name").to_list() == names


def test_each_row_keeps_the_columns_that_others_lack(recorder):
    LOG.add(kernel(1), 10, 12)
    LOG.add(copy(2, 64), 20, 21)
    LOG.add(kernel(3, grid=(4, 5, 6)), 30, 31)
    LOG.add(kernel(4), 40, 41)
    table = recorder.drain().activities
    assert table["bytes"].tolist() == [-1, 64, -1, -1]
    assert table["grid_y"].tolist() == [-1, -1, 5, -1]
    assert table.names("copy_kind").to_list() == [None, "HtoD", None, None]
    assert table["stream_id"].tolist() == [3] * 4


def test_waits_for_events_keep_the_calls_that_recorded_them(recorder):
    for number in (5, 6):
        event = RecordedEvent(number, 8)
        LOG.add(
            Activity("synchronization", "wait", number + 10, 3, event=event), number, number + 1
        )
    LOG.add(kernel(1), 10, 12)
    table = recorder.drain().activities
    assert table["event_correlation_id"].tolist() == [5, 6, -1]
    assert table["event_stream_id"].tolist() == [8, 8, -1]
    assert table["event_context_id"].tolist() == [CONTEXT_ID, CONTEXT_ID, -1]
    assert table.names("event_source").to_list() == ["exact", "exact", None]


def test_a_log_of_nothing_gives_no_rows(recorder):
    assert len(recorder.drain().activities) == 0


def test_columns_that_no_row_has_are_left_out(recorder):
    LOG.add(kernel(1), 10, 12)
    LOG.add(copy(2, 64), 20, 21)
    table = recorder.drain().activities
    assert not table.is_absent("bytes")
    assert table.is_absent("grid_x")
    assert table["grid_x"].tolist() == [-1, -1]
