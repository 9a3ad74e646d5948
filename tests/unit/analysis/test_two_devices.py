"""Profiles of one process with two GPUs whose streams have the same numbers."""

import numpy as np
import pytest

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING
from epprof_nb.data.table import concat
from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_profile
from tests.helpers.tiny import activity, call, kernel, op, profile

GPUS = [{"device_id": i, "name": "H200", "kind": "gpu"} for i in range(2)]


def both():
    """The same work twice: on GPU 0, then on GPU 1 by another thread, on equal streams."""
    one = synthetic_profile(2_000)
    moved = {}
    for name, first in (("ops", 10**6), ("activities", 10**6), ("api_calls", 10**6)):
        table, changed = one.tables[name], {}
        for column in ("op_id", "parent_op_id", "correlation_id", "thread_id"):
            if column in table.schema.names:
                ids = table[column]
                changed[column] = np.where(ids == MISSING, MISSING, ids + first)
        if name == "activities":
            changed |= {"device_id": np.ones(len(table), np.int64), "context_id": 2 + 0 * ids}
        moved[name] = table.replace(**changed)
    tables = {n: concat([one.tables[n], moved[n]]) for n in moved}
    return one, Profile(tables, {**one.info, "devices": GPUS}, one.sources)


@pytest.mark.parametrize("name", ["by_stream", "overlap", "gaps", "transfers"])
def test_tables_by_device_have_each_device_as_if_it_were_alone(name):
    one, two = both()
    alone, found = getattr(one, name)(), getattr(two, name)()
    for device in range(2):
        of_device = found[found["device_id"] == device].reset_index(drop=True)
        assert len(of_device) == len(alone)
        for column in alone.columns:
            if column in ("op_id", "device_id", "context_id", "device", "stream", "share"):
                continue
            assert of_device[column].astype(str).tolist() == alone[column].astype(str).tolist(), (
                column
            )


def test_each_device_is_a_row_also_without_work():
    _, two = both()
    table = two.by_device()
    assert table["device"].tolist() == ["GPU 0", "GPU 1"]
    assert table["busy_ns"].nunique() == table["idle_ns"].nunique() == 1
    idle = profile([], [kernel(0, 10)], info={"wall_ns": 40, "devices": GPUS}).by_device()
    assert idle["idle_ns"].tolist() == [30, 40]
    assert idle["count"].tolist() == [1, 0]


def test_streams_of_equal_number_keep_their_device():
    _, two = both()
    assert "stream 7, GPU 0" in two.by_stream()["stream"].tolist()
    assert "stream 7, GPU 1" in two.by_stream()["stream"].tolist()


def test_the_critical_path_does_not_queue_work_of_one_device_behind_the_other():
    prof = profile(
        [],
        [
            kernel(10, 500, correlation_id=1, context_id=1),
            kernel(500, 900, correlation_id=2, context_id=1),
            kernel(501, 620, correlation_id=3, device_id=1, context_id=2),
        ],
        [call(5 * i, 5 * i + 4, correlation_id=1 + i) for i in range(3)],
        info={"wall_ns": 900},
    )
    steps = prof.critical_path()
    assert set(steps["device_id"].dropna()) == {0}
    assert steps["duration_ns"].sum() == 900


def test_a_peer_copy_counts_once_and_both_devices_know_it():
    copy = {"copy_kind": "PtoP", "bytes": 4096, "src_device_id": 0, "dst_device_id": 1}
    prof = profile(
        [],
        [kernel(0, 10), activity("memcpy", 10, 14, **copy), kernel(2, 9, device_id=1)],
        info={"wall_ns": 20, "devices": GPUS},
    )
    table = prof.by_device().set_index("device")
    assert table["bytes"].tolist() == [4096, 0]
    assert table["sent_bytes"].tolist() == [4096, 0]
    assert table["received_bytes"].tolist() == [0, 4096]
    assert prof.transfers()["bytes"].sum() == 4096
    assert prof.overlap().set_index("device")["communication_ns"].tolist() == [4, 0]


def test_graphs_on_two_devices_are_not_joined():
    nodes = [
        kernel(10 + d, 20 + d, correlation_id=1 + d, device_id=d, graph_id=5 + d, graph_node_id=9)
        for d in range(2)
    ]
    calls = [call(d, d + 1, correlation_id=1 + d, name="cuGraphLaunch") for d in range(2)]
    launches = profile([op(1, "run", 0, 50)], nodes, calls, info={"wall_ns": 50}).launches()
    assert launches["graph_launches"].sum() == 2
    assert launches["kernels"].sum() == 2


def test_findings_name_the_devices():
    one = synthetic_profile(2_000)
    assert one.insights().iloc[0]["text"].startswith("GPU idle 60.0 ms before its first work")
    work = one.tables["activities"]
    # The same thread launches the second half on another GPU.
    second = work["start_ns"] > np.median(work["start_ns"])
    moved = work.replace(device_id=second.astype(np.int64), context_id=1 + second)
    two = Profile({**one.tables, "activities": moved}, {**one.info, "devices": GPUS}, one.sources)
    text = two.insights().iloc[0]["text"]
    assert text.startswith("GPU 0 and GPU 1 idle 77.2 ms before their first work")


def test_kernels_of_a_name_on_two_devices_are_one_row_of_by_kernel():
    _, two = both()
    names = CategoryColumn.of(two.by_kernel()["name"].tolist())
    assert len(names.categories) == len(two.by_kernel())
    assert two.by_kernel()["device_ns"].sum() <= two.by_device()["device_ns"].sum()
