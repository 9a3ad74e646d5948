"""What the live widget asks is answered, or told why it cannot be."""

from __future__ import annotations

import pytest
import tiny

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.widget.requests import answer, answers


def test_an_event_is_described_by_the_fields_of_its_row():
    profile = tiny.profile(
        ops=[tiny.op(1, "forward", 0, 100)],
        activities=[tiny.kernel(5, 9, 1, name="gemm", bytes=-1, correlation_id=2**60)],
    )
    reply = answer(ViewModel(profile), {"type": "describe", "prefix": "act", "row": 0})
    fields = reply.content["fields"]
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
    reply = answer(ViewModel(synthetic_profile(activities=3)), request_)
    assert why in reply.content["error"]
    assert reply.data is None


def test_tables_are_answered_one_at_a_time():
    reply = answer(ViewModel(synthetic_profile(activities=200)), {"type": "table", "by": "kernel"})
    names = [column["name"] for column in reply.content["table"]["columns"]]
    assert "device_ns" in names
    assert reply.content["table"]["rows"] > 3


def test_what_is_told_is_no_request():
    assert answers("window")
    assert not answers("selected")
    assert not answers(None)
