"""Responses to the live widget, and errors of invalid requests."""

from __future__ import annotations

import gzip
import json

import pytest

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.queries.view_selection import Selections
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.widget import trace_download
from epprof_nb.views.widget.requests import Response, handle, is_request
from tests.helpers import tiny


def test_an_event_is_described_by_the_fields_of_its_row():
    profile = tiny.profile(
        ops=[tiny.op(1, "forward", 0, 100)],
        activities=[tiny.kernel(5, 9, 1, name="gemm", bytes=-1, correlation_id=2**60)],
    )
    response = handle(
        Selections(ViewModel(profile)), {"type": "describe", "prefix": "act", "row": 0}
    )
    fields = response.content["fields"]
    assert fields["name"] == "gemm"
    assert (fields["start_ns"], fields["end_ns"], fields["op_id"]) == (5, 9, 1)
    assert fields["correlation_id"] == str(2**60)  # a double would round it
    assert "bytes" not in fields


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ({"type": "describe", "prefix": "act", "row": 10}, "no row 10"),
        ({"type": "describe", "prefix": "??", "row": 0}, "KeyError"),
        ({"type": "table", "by": "colour"}, "colour"),
        ({"type": "window", "start": "early", "end": 1, "width": 1}, "early"),
        ({"type": "window"}, "start"),
    ],
)
def test_what_cannot_be_answered_says_why(request_, why):
    response = handle(Selections(ViewModel(synthetic_profile(activities=3))), request_)
    assert why in response.content["error"]
    assert response.data is None


def test_tables_are_answered_one_at_a_time():
    response = handle(
        Selections(ViewModel(synthetic_profile(activities=200))), {"type": "table", "by": "kernel"}
    )
    names = [column["name"] for column in response.content["table"]["columns"]]
    assert "device_ns" in names
    assert response.content["table"]["rows"] > 3


def test_what_is_told_is_no_request():
    assert is_request("window")
    assert not is_request("selected")
    assert not is_request(None)


def test_a_profile_is_sent_as_a_trace_that_perfetto_opens(monkeypatch):
    profile = synthetic_profile(activities=300)
    sent = trace_download.trace(profile, profile.to_chrome)
    events = json.loads(gzip.decompress(sent.data))["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) > 300
    assert trace_download.trace(profile, None) == Response({})
    monkeypatch.setattr(trace_download, "_MAX_EVENTS", 100)
    assert "too large" in trace_download.trace(profile, profile.to_chrome).content["error"]


def test_a_trace_that_cannot_be_written_says_why():
    def full(_):
        raise OSError(28, "No space left on device")

    error = trace_download.trace(synthetic_profile(activities=10), full).content["error"]
    assert "No space left on device" in error
