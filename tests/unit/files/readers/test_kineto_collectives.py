"""Collectives in traces of PyTorch's profiler: communicator, size and waiting times of ranks."""

import json

import pytest

import epprof_nb
from epprof_nb.jobs.job import Job
from tests.helpers.traces import kineto, x

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"


def comms(ts, name="allreduce", **more):
    args = {"Collective name": name, "Process Group Name": "0", "Group size": 2,
            "In msg nelems": 1000, "Out msg nelems": 2000, "dtype": "Float"}  # fmt: skip
    return x("record_param_comms", ts, 20, **{**args, **more})


def rank_trace(*arrivals, name="allreduce", base=None, **more):
    """Return a trace of all-reduces that end 50 us after the later of two arrivals of each."""
    events = []
    for number, (arrive, end) in enumerate(arrivals, 1):
        launch = number * 100
        events += [
            comms(launch, name, **more),
            x("cudaLaunchKernel", launch + 5, 3, "cuda_runtime", correlation=number),
            x(NCCL, arrive, end - arrive, "kernel", 0, 7, correlation=number, device=0, stream=7),
        ]
    top = {} if base is None else {"baseTimeNanoseconds": base}
    return kineto(x("step", 0, 1000, "user_annotation"), *events, **top)


def job_of(read, *traces):
    return Job(dict(enumerate(map(read, traces))))


def test_ranks_are_matched_by_the_communicator_of_their_process_group(read):
    early, late = rank_trace((110, 300), (310, 500)), rank_trace((110, 300), (410, 500))
    waits = job_of(read, early, late).collectives()
    assert waits["kind"].tolist() == ["all_reduce"] * 4
    assert waits["communicator"].tolist() == ["0"] * 4
    assert waits["bytes"].tolist() == [4000] * 4
    assert waits["matched_by"].tolist() == ["communicator"] * 4
    assert waits["waited_ns"].tolist() == [0, 0, 100_000, 0]
    assert waits["transfer_ns"].tolist() == [190_000, 190_000, 90_000, 90_000]


def test_a_process_group_of_which_a_rank_is_missing_has_no_waiting_times(read):
    trace = rank_trace((110, 300), **{"Group size": 3})
    waits = job_of(read, trace, trace).collectives()
    assert waits["waited_ns"].isna().all()
    assert "has 3 ranks, of which 2 were recorded" in waits.attrs["note"]


@pytest.mark.parametrize(
    ("name", "dtype", "size"),
    [
        ("_allgather_base", "BFloat16", 2000),
        ("reduce_scatter_tensor_coalesced", "BFloat16", 4000),
        ("all_to_all", "Byte", 1000),
        ("allreduce", "Quantum", None),
        ("allreduce", ["Float"], None),
    ],
)
def test_sizes_are_those_that_nccl_counts(read, name, dtype, size):
    prof = read(kineto(comms(10, name, dtype=dtype)))
    (args,) = prof.ops["args"].dropna()
    assert args == {"collective": name, "communicator": "0", "ranks": 2} | (
        {} if size is None else {"bytes": size}
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"Process Group Name": 7}, {"Process Group Name": "x" * 300}, {"Collective name": None},
        {"Process Group Name": "a\n\x1b[31m"},
    ],
)  # fmt: skip
def test_calls_without_a_plausible_communicator_have_no_arguments(read, wrong):
    assert read(kineto(comms(10, **wrong))).ops["args"].isna().all()


@pytest.mark.parametrize("wrong", [-1, 2**70, "8", True, 1.5])
def test_implausible_numbers_are_left_out(read, wrong):
    prof = read(kineto(comms(10, **{"Group size": wrong, "In msg nelems": wrong})))
    assert prof.ops["args"].iloc[0] == {"collective": "allreduce", "communicator": "0"}


def test_waits_of_the_host_are_no_collectives(read):
    trace = rank_trace((110, 300), (310, 500))
    trace["traceEvents"].insert(3, comms(150, "wait"))
    waits = job_of(read, trace, trace).collectives()
    assert waits["bytes"].tolist() == [4000] * 4


def test_redacted_copies_keep_the_collectives(read):
    trace = rank_trace((110, 300), (310, 500))
    job = job_of(read, trace, trace)
    copy = job.redacted()
    for column in ("kind", "bytes", "waited_ns", "matched_by"):
        assert copy.collectives()[column].tolist() == job.collectives()[column].tolist()


def test_traces_without_a_base_have_times_since_1970(tmp_path):
    jobs = []
    for base, shift in ((0, 1_682_725_898_240_000), (1_682_725_898_240_000_000, 0)):
        traces = [rank_trace((110, 300)), rank_trace((110, 300))]
        for rank, trace in enumerate(traces):
            for event in trace["traceEvents"]:
                event["ts"] += shift + 7 * rank
            if base:
                trace["baseTimeNanoseconds"] = base
            (tmp_path / f"{rank}.json").write_text(json.dumps(trace))
        jobs.append(Job({r: epprof_nb.read_trace(tmp_path / f"{r}.json") for r in range(2)}))
    for job in jobs:
        assert job.placements[1].offset_ns - job.placements[0].offset_ns == 7000
        assert job.collectives()["waited_ns"].tolist() == [7000, 0]
