"""Messages that are encoded many at a time, read back with the library."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import DebugAnnotation, TrackEvent

from epprof_nb.files.exporters.protobuf import Messages

whole = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.tuples(whole, st.booleans(), st.text(max_size=200)), min_size=1, max_size=9))
def test_each_message_is_that_of_the_library(rows):
    values = np.array([value for value, *_ in rows], np.int64)
    present = np.array([known for _, known, _ in rows])
    tails = [TrackEvent(log_message={"body_iid": 7}, name=text).SerializeToString()
             for *_, text in rows]  # fmt: skip
    annotations = Messages(len(rows))
    annotations.integer(DebugAnnotation.NAME_IID_FIELD_NUMBER, 300)
    annotations.integer(DebugAnnotation.INT_VALUE_FIELD_NUMBER, values)
    events = Messages(len(rows), tails)
    events.integer(TrackEvent.TRACK_UUID_FIELD_NUMBER, values, ~present)
    events.message(TrackEvent.DEBUG_ANNOTATIONS_FIELD_NUMBER, annotations, present)
    data, at = events.encoded(), 0
    for (value, known, text), size in zip(rows, events.sizes.tolist(), strict=True):
        event = TrackEvent.FromString(data[at : at + size])
        assert event.name == text
        assert event.log_message.body_iid == 7
        assert event.HasField("track_uuid") == (not known)
        assert event.track_uuid == (0 if known else value % 2**64)
        expected = [DebugAnnotation(name_iid=300, int_value=value)] if known else []
        assert list(event.debug_annotations) == expected
        at += size
    assert at == len(data)
