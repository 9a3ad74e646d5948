"""Launches, waits and records that a trace lacks are missing; those that it counts as 0 are 0."""

import pytest

import epprof_nb
from epprof_nb.jobs.job import Job
from tests.helpers.traces import KINETO, NEW_ORT, VIZTRACER, gpu_trace, kineto, x

HOST_ONLY = (KINETO, NEW_ORT, VIZTRACER)
CALLS = ["waits", "wait_ns"]


def without_calls():
    """A trace with device work and the ops around it, but without API calls."""
    trace = gpu_trace()
    events = [e for e in trace["traceEvents"] if e["cat"] not in ("cuda_runtime", "cuda_driver")]
    return {**trace, "traceEvents": events}


def is_missing(frame):
    return frame.isna().to_numpy().all()


@pytest.mark.parametrize("path", HOST_ONLY, ids=lambda path: path.stem)
def test_a_trace_of_the_host_has_no_launches_and_waits(path):
    prof = epprof_nb.read_trace(path)
    tree = prof.by_stack()
    assert tree["level"].tolist() == ["session"]
    assert is_missing(tree[["count", "device_ns", "launches", *CALLS]])
    assert is_missing(prof.critical_path(by="op")["device_path_ns"])
    assert (prof.critical_path(by="op")["host_path_ns"] > 0).any()


def test_calls_that_did_not_wait_are_counted(read):
    tree = read(gpu_trace()).by_stack()
    assert tree["launches"].max() == 3  # the replay of the graph is one
    assert tree[CALLS].to_numpy().tolist() == [[0, 0]] * len(tree)


def test_waits_are_missing_without_api_calls(read):
    tree = read(without_calls()).by_stack()
    assert tree["launches"].max() == 3
    assert is_missing(tree[CALLS])


def test_changes_of_what_a_trace_lacks_are_refused(read):
    host_only = epprof_nb.read_trace(KINETO)
    with pytest.raises(ValueError, match=r"no API calls.*waits"):
        host_only.what_if({"waits": 0})
    with pytest.raises(ValueError, match=r"no device work.*copies"):
        host_only.what_if({"copies": 0})
    with pytest.raises(ValueError, match="no API calls"):
        read(without_calls()).what_if({"waits": 0})
    assert read(without_calls()).what_if({"copies": 0})["changed"].tolist() == ["copies"]
    assert read(gpu_trace()).what_if({"waits": 0})["saving_ns"].tolist() == [0]


def test_no_trace_counts_the_records_that_it_lacks(read, tmp_path):
    prof = read(gpu_trace())
    prof.save(tmp_path / "again.epprof")
    for again in (prof, epprof_nb.load(tmp_path / "again.epprof")):
        assert is_missing(again.by_device()["unknown_ns"])
        assert is_missing(again.overlap()["not_recorded_ns"])
        assert (again.by_device()["idle_ns"] > 0).all()
        job = Job({0: again})
        assert is_missing(job.by_device()["unknown_ns"])
        assert is_missing(job.by_rank()["unknown_ns"])


def test_a_process_whose_trace_lacks_devices_has_no_device_times(read):
    job = Job({0: epprof_nb.read_trace(KINETO), 1: read(gpu_trace())})
    by_rank, ranks = job.by_rank(), job.ranks
    measured = ["device_ns", "busy_ns", "kernels", "bytes", "sent_bytes", "communication_ns"]
    assert is_missing(by_rank.loc[0, measured])
    assert by_rank.loc[1, "kernels"] == 3
    assert by_rank.loc[1, "sent_bytes"] == 0
    assert ranks["busy_ns"].isna().tolist() == [True, False]


def test_a_comparison_leaves_out_what_one_side_lacks(read):
    whole, host_only = read(gpu_trace()), epprof_nb.read_trace(KINETO)
    changes = epprof_nb.compare(host_only, whole)
    tree = changes.by_stack()
    of_both = ["delta_ns", "change"]
    old = ["before_ns", "wait_before_ns", "launches_before", "waits_before", "activities_before"]
    assert is_missing(tree[[*old, *of_both]])
    assert tree.loc[0, ["after_ns", "launches_after", "waits_after"]].tolist() == [22_500, 3, 0]
    assert is_missing(changes.ops["device_contribution_ns"])
    assert is_missing(epprof_nb.compare(*[read(without_calls())] * 2).ops["device_contribution_ns"])
    same = epprof_nb.compare(whole, whole).ops
    assert same["device_contribution_ns"].tolist() == [0] * len(same)


@pytest.mark.parametrize("has_links", [True, False])
def test_backward_times_are_missing_where_no_node_has_an_operator(has_links, read):
    link = {"Sequence number": 5}
    node = "autograd::engine::evaluate_function: MmBackward0"
    prof = read(
        kineto(
            x("aten::mm", 0, 10, **link),
            x("aten::add", 12, 10),
            x(node, 30, 20, tid=3, **(link if has_links else {})),
            x("MmBackward0", 32, 16, tid=3, **(link if has_links else {})),
        )
    )
    times = prof.by_operator().set_index("name")["backward_host_ns"]
    if has_links:
        assert times["aten::mm"] > 0
        assert times["aten::add"] == 0
    else:
        assert is_missing(times)
