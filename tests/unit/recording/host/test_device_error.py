"""A lost device in `Profile.info`: its error, the recorded work, and no useless advice."""

import pytest

import epprof_nb
from epprof_nb import host
from epprof_nb.recording.host.recorder import HostRecorder


@pytest.fixture
def lost_device(monkeypatch):
    """A recorder whose device fails, which loses its last two records."""
    drain = HostRecorder.drain

    def failing(self, *, waited=True):
        output = drain(self, waited=waited)
        kept = max(len(output.activities) - 2, 0)
        output.activities = output.activities.take(slice(0, kept))
        output.dropped = 2
        output.failure = ("CUDA_ERROR_ASSERT", "device-side assert triggered")
        return output

    monkeypatch.setattr(HostRecorder, "drain", failing)


def work(times: int):
    array = host.empty((16,))
    with epprof_nb.profile() as prof:
        for _ in range(times):
            host.launch(lambda a: a.fill(1), array, name="fill")
    return prof


@pytest.mark.usefixtures("lost_device")
def test_the_note_names_the_error_and_counts_what_was_recorded_and_lost():
    prof = work(5)
    assert prof.info["device_error"] == "CUDA_ERROR_ASSERT"
    (note,) = prof.info["notes"]
    assert "CUDA_ERROR_ASSERT (device-side assert triggered)" in note
    assert "restart the Jupyter kernel" in note
    assert "before the failure: 3 kernel" in note
    assert "lost with the CUDA context: 2 kernel" in note
    assert "max_records" not in note


def test_a_device_that_works_has_no_error():
    prof = work(2)
    assert prof.info["device_error"] is None
    assert prof.info["notes"] == []
