"""Collectives that PyTorch issued in C++, beside those that a replaced function has seen."""

from epprof_nb.analysis.ranks.collective_kinds import CALL
from epprof_nb.recording.torch import collectives_from_cpp
from epprof_nb.recording.torch.collectives_from_cpp import with_flight_recorder
from tests.helpers.tiny import op, profile


def test_collectives_before_and_after_a_known_call_are_added(monkeypatch):
    entries = [
        {"at_ns": at, "thread_id": 1, "kind": "all_reduce", "args": {}}
        for at in (100_000, 160_000, 250_000, 340_000, 400_000)
    ]
    monkeypatch.setattr(collectives_from_cpp, "_entries", lambda *_: entries)
    ops = profile([op(1, "all_reduce", 200_000, 300_000, op_type=CALL)]).tables["ops"]
    found = with_flight_recorder(ops, 0, 10**6)
    assert found["start_ns"].tolist() == [100_000, 200_000, 400_000]
