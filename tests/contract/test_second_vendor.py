"""A recorder of a second vendor's GPU beside the host device; it sets only what it has."""

import numpy as np

import epprof_nb
from epprof_nb import _native
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, API_CALLS
from epprof_nb.data.table import Table
from epprof_nb.recording.host.recorder import HostRecorder
from epprof_nb.recording.recorder import (
    CellLog,
    IdentifiedOps,
    RecordedCalls,
    Recorder,
    RecorderOutput,
)
from epprof_nb.recording.session import service
from tests.contract.rows import kernels_of, op_names
from tests.helpers.session_work import work

CORRELATION_ID = 1 << 40


class SecondVendor(Recorder):
    """Records a kernel at the end, with its API call and without the op that was open."""

    name = "vendor"

    def start(self, options):
        return ["The second vendor records."]

    def extend(self, options):
        return []

    def stop(self):
        pass

    def devices(self):
        return [{"device_id": 3, "name": "Second GPU", "kind": "gpu"}]

    def state(self):
        return {"driver_version": "2"}

    def describe(self, ops, activities):
        return {"their_ops": len(ops)}, ["The second vendor is done."]

    def drain(self, *, waited=True):
        if not waited:
            return RecorderOutput()
        text, no_ids = CategoryColumn.constant, np.empty(0, np.int64)
        start = np.array([_native.now_ns() - 2_000])
        times = {"start_ns": start, "end_ns": start + 1_000, "duration_ns": np.array([1_000])}
        common = {"correlation_id": np.array([CORRELATION_ID]), **times}
        kernel = {"kind": text("kernel", 1), "name": text("theirs", 1), "device_id": np.array([3])}
        call = {"domain": text("runtime", 1), "name": text("launch", 1)}
        calls = RecordedCalls(
            Table(API_CALLS, {**common, **call}),
            no_ids,
            no_ids,
            np.zeros(1, np.bool_),
            CellLog(0, no_ids, no_ids, no_ids, no_ids),
        )
        return RecorderOutput(Table(ACTIVITIES, {**common, **kernel}), calls=calls)

    def identify_ops(self, ops, activities, call_start, call_end, stopped_ns):
        found = activities["correlation_id"] == CORRELATION_ID
        assert (call_start[found] == activities["start_ns"][found]).all()
        mine = ops["op_id"][ops.names("name").equals("mine")][0]
        return IdentifiedOps(ops, np.where(found, mine, activities["op_id"]), found)


def test_a_recorder_of_a_second_vendor_sets_what_it_has(monkeypatch):
    monkeypatch.setattr(service, "_recorders", lambda: (HostRecorder(), SecondVendor()))
    with epprof_nb.profile() as prof, epprof_nb.op("mine"):
        work("k")
    rows = kernels_of(prof)
    assert sorted(rows.index) == ["k", "theirs"]
    assert op_names(prof, rows["op_id"]) == ["mine", "mine"]
    assert rows["attribution"].astype(str).to_dict() == {"k": "stack", "theirs": "learned"}
    call = prof.api_calls[prof.api_calls["name"] == "launch"]
    assert op_names(prof, call["op_id"]) == ["mine"]
    assert prof.info["notes"] == ["The second vendor records.", "The second vendor is done."]
    assert prof.info["their_ops"] == len(prof.ops)
    assert prof.info["gpu"] == {name: {"driver_version": "2"} for name in ("before", "after")}
    assert {d["kind"] for d in prof.info["devices"]} == {"gpu", "host"}
    assert "no_gpu" not in prof.info
