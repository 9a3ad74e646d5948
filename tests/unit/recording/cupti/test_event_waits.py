"""Records of the events that synchronizations waited for, in each layout."""

import numpy as np
import pytest

from epprof_nb import _native
from epprof_nb.recording.cupti import event_waits
from epprof_nb.recording.cupti.event_waits import EventWaits
from epprof_nb.recording.cupti.layouts import layout_for
from epprof_nb.recording.cupti.loading import packed_layout
from epprof_nb.recording.cupti.tables import activities

WITHOUT_NUMBERS, WITH_NUMBERS = (18, 24), (26, 28, 130001, 130500)
NONE = 0xFFFFFFFF
EVENT_SYNCHRONIZE, STREAM_WAIT_EVENT, STREAM_SYNCHRONIZE = 1, 2, 3


def record(version, name, **values):
    """A record with some fields; as in CUPTI, older layouts lack the others."""
    struct = layout_for(version).records[name]
    kind = {"cuda_event": 36, "synchronization": 38}[name]
    raw = bytearray(struct.size)
    for field, value in {"kind": kind, **values}.items():
        if field in struct.fields:
            offset, width, _ = struct.fields[field]
            raw[offset : offset + width] = int(value).to_bytes(width, "little")
    return bytes(raw)


def event(version, correlation, number=5, *, sync, stream=13, context=1):
    return record(
        version, "cuda_event", correlationId=correlation, contextId=context, streamId=stream,
        eventId=number, cudaEventSyncId=sync,
    )  # fmt: skip


def wait(version, correlation, number=5, *, sync, kind=STREAM_WAIT_EVENT, stream=14, context=1):
    return record(
        version, "synchronization", type=kind, start=100, end=110, correlationId=correlation,
        contextId=context, streamId=stream, cudaEventId=number, cudaEventSyncId=sync,
    )  # fmt: skip


def found(version, *records, known=None):
    raw = _native.decode(b"".join(records), packed_layout(version))
    table = activities(raw, None, {}, known)
    columns = [table[f"event_{name}_id"].tolist() for name in ("correlation", "context", "stream")]
    return [*zip(*columns, table.names("event_source").to_list(), strict=True)]


@pytest.mark.parametrize("kind", [EVENT_SYNCHRONIZE, STREAM_WAIT_EVENT])
@pytest.mark.parametrize("version", [*WITHOUT_NUMBERS, *WITH_NUMBERS])
def test_a_wait_has_the_record_before_it_in_whatever_order_they_come(version, kind):
    source = "exact" if version in WITH_NUMBERS else "latest"
    records = [
        event(version, 30, sync=3, stream=15),
        wait(version, 20, sync=2, kind=kind),
        event(version, 10, sync=2),
        wait(version, 40, sync=3, kind=kind),
        event(version, 5, sync=1, stream=16),
    ]
    assert found(version, *records) == [(10, 1, 13, source), (30, 1, 15, source)]


@pytest.mark.parametrize("version", WITH_NUMBERS)
def test_the_number_counts_where_the_order_of_calls_says_otherwise(version):
    """Another thread records the event again while the first one enters the wait."""
    records = [event(version, 10, sync=1), event(version, 19, sync=2), wait(version, 20, sync=1)]
    assert found(version, *records) == [(10, 1, 13, "exact")]


@pytest.mark.parametrize("version", [24, 28])
def test_events_of_other_contexts_and_numbers_are_others(version):
    records = [
        event(version, 10, sync=1, context=2),
        event(version, 11, 6, sync=2),
        wait(version, 20, sync=3),
        event(version, 30, sync=4),
    ]
    assert found(version, *records) == [(-1, -1, -1, None)]


def test_a_number_of_another_event_is_not_taken():
    records = [event(28, 10, sync=1, stream=15), event(28, 11, 6, sync=2), wait(28, 20, sync=2)]
    assert found(28, *records) == [(10, 1, 15, "latest")]


@pytest.mark.parametrize("version", [24, 28])
def test_synchronizations_without_an_event_have_none(version):
    sync = wait(version, 20, NONE, sync=0, kind=STREAM_SYNCHRONIZE)
    assert found(version, event(version, 10, NONE, sync=0), sync) == [(-1, -1, -1, None)]


@pytest.mark.parametrize("version", [24, 28])
def test_events_that_an_earlier_drain_returned_are_known(version):
    known = EventWaits()
    first = [event(version, 10, sync=1), event(version, 20, sync=2), event(version, 15, 6, sync=3)]
    assert found(version, *first, known=known) == []
    waits = [wait(version, 30, sync=2), wait(version, 31, 6, sync=3), event(version, 40, sync=4)]
    source = "exact" if version in WITH_NUMBERS else "latest"
    assert found(version, *waits, known=known) == [(20, 1, 13, source), (15, 1, 13, source)]


def test_the_newest_events_of_earlier_drains_are_kept(monkeypatch):
    monkeypatch.setattr(event_waits, "_MOST_KEPT", 1)
    known = EventWaits()
    found(24, event(24, 15, 6, sync=0), event(24, 10, sync=0), known=known)
    waits = [wait(24, 30, sync=0), wait(24, 31, 6, sync=0)]
    assert found(24, *waits, known=known) == [(-1, -1, -1, None), (15, 1, 13, "latest")]


@pytest.mark.parametrize("seed", range(5))
def test_random_records_agree_with_a_search(seed):
    rng = np.random.default_rng(seed)
    calls = [
        (what, int(rng.integers(1, 4)), int(rng.integers(1, 3)), correlation)
        for correlation, what in enumerate(rng.choice(["record", "wait"], 60).tolist(), 1)
    ]
    records, expected = [], []
    for at in rng.permutation(len(calls)).tolist():
        what, number, context, correlation = calls[at]
        make = event if what == "record" else wait
        records.append(make(24, correlation, number, sync=0, context=context))
        if what == "wait":
            before = [c for c in calls[:at] if c[:3] == ("record", number, context)]
            last = before[-1][3] if before else -1
            expected.append((last, context, 13, "latest") if before else (-1, -1, -1, None))
    assert found(24, *records) == expected
