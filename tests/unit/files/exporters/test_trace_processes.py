"""Traces of a job: a process per rank, on one clock, with ids that differ among ranks."""

import json

from epprof_nb.files.exporters.chrome_trace import job_to_chrome
from epprof_nb.files.exporters.perfetto import job_to_perfetto
from epprof_nb.files.exporters.trace_processes import TraceProcess
from epprof_nb.testing import synthetic_profile
from tests.helpers.tiny import call, kernel, line, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks
from tests.unit.files.exporters.test_perfetto import Read

US = 1_000
INFO = {"devices": [{"device_id": d, "name": "GPU", "kind": "gpu"} for d in (0, 1)]}


def rank(begin_us, *, device=0):
    """A statement that launches two kernels on two streams."""
    at = begin_us * US
    return profile(
        [line(1, 4, at, at + 90 * US), line(2, 5, at + 90 * US, at + 95 * US, count=3)],
        [
            kernel(at + 20 * US, at + 40 * US, 1, correlation_id=8, device_id=device, stream_id=s)
            for s in (7, 8)
        ],
        [call(at + 5 * US, at + 9 * US, correlation_id=8, op_id=1, thread_id=1)],
        info=INFO | {"wall_ns": 100 * US, "repeats": [[at, at + 90 * US]]},
    )


def processes(*pids, begin_us=0):
    return [
        TraceProcess(f"rank {i}", pid, i * 1_000 * US, lambda i=i: rank(begin_us, device=i))
        for i, pid in enumerate(pids)
    ]


def chrome(tmp_path, given):
    job_to_chrome(given, tmp_path / "job.json")
    return json.loads((tmp_path / "job.json").read_text())


def test_chrome_has_one_process_per_rank_with_its_devices(tmp_path):
    events = chrome(tmp_path, processes(71, 72))["traceEvents"]
    assert {e["pid"] for e in events} == {71, 72}
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {71: "rank 0", 72: "rank 1"}
    order = {e["pid"]: e["args"]["sort_index"] for e in events if e["name"] == "process_sort_index"}
    assert order == {71: 0, 72: 1}
    tracks = {(e["pid"], e["args"]["name"]) for e in events if e["name"] == "thread_name"}
    assert {(71, "GPU 0: stream 7"), (71, "GPU 0: stream 8"), (72, "GPU 1: stream 7")} <= tracks
    assert {name for pid, name in tracks if pid == 71} >= {"repeats"}
    tids = [(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"]
    assert len(set(tids)) == len(tids)
    counters = {(e["pid"], e["name"]) for e in events if e["ph"] == "C"}
    assert {(71, "GPU 0: busy"), (72, "GPU 1: busy")} <= counters


def test_chrome_puts_all_ranks_on_the_clock_of_the_job(tmp_path):
    events = chrome(tmp_path, processes(71, 72))["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    starts = {(e["pid"], e.get("cat"), e["ts"]) for e in slices}
    assert {(71, "kernel", 20), (72, "kernel", 1020), (71, "api", 5), (72, "api", 1005)} <= starts
    assert {(71, "repeat", 0), (72, "repeat", 1000)} <= starts


def test_arrows_and_asynchronous_ops_of_ranks_have_different_ids(tmp_path):
    events = chrome(tmp_path, processes(71, 72))["traceEvents"]
    for begin, end in (("s", "f"), ("b", "e")):
        pids = {}
        for phase in (begin, end):
            found = [e for e in events if e["ph"] == phase]
            assert len({e["id"] for e in found}) == len(found) > 1
            for event in found:
                pids.setdefault(event["id"], set()).add(event["pid"])
        assert all(len(of_id) == 1 for of_id in pids.values())


def test_frames_of_ranks_are_their_own(tmp_path):
    def load(function):
        rows, (stack,) = stack_rows(f"train.py:step:{function} model.py:{function}:7")
        work = [kernel(5 * US, 9 * US, stack_id=stack)]
        return with_stacks(profile((), work, info=INFO | {"wall_ns": 10 * US}), rows)

    given = [
        TraceProcess("rank 0", 71, 0, lambda: load("1")),
        TraceProcess("rank 1", 72, 0, lambda: load("2")),
    ]
    trace = chrome(tmp_path, given)
    frames, found = trace["stackFrames"], {}
    for event in trace["traceEvents"]:
        if "sf" in event:
            inner = frames[event["sf"]]
            found[event["pid"]] = [inner["name"], frames[inner["parent"]]["name"]]
    assert found == {
        71: ["1 (model.py:7)", "step (train.py:1)"],
        72: ["2 (model.py:7)", "step (train.py:2)"],
    }


def test_processes_with_equal_pids_on_two_hosts_are_kept_apart(tmp_path):
    events = chrome(tmp_path, processes(71, 71))["traceEvents"]
    assert {e["pid"] for e in events} == {1, 2}


def test_perfetto_has_one_process_per_rank_on_one_clock(tmp_path):
    path = tmp_path / "job.perfetto"
    job_to_perfetto(processes(71, 72, begin_us=-3), path)
    read = Read(path.read_bytes())
    kernels = {(s["track"], s["start"]) for s in read.slices if s["category"] == "kernel"}
    assert {track[:2] for track, _ in kernels} == {
        ("rank 0", "device 0: GPU"),
        ("rank 1", "device 1: GPU"),
    }
    # The earliest op begins 3 us before the job.
    assert {start for _, start in kernels} == {20 * US, 1020 * US}
    flows = [flow for s in read.slices for flow in s["from"]]
    assert len(flows) == len(set(flows)) == 4


def test_a_large_job_is_one_trace(tmp_path):
    given = [
        TraceProcess(f"rank {i}", 100 + i, i * US, lambda i=i: synthetic_profile(2_000, seed=i))
        for i in range(3)
    ]
    trace = chrome(tmp_path, given)
    kernels = [e for e in trace["traceEvents"] if e.get("cat") == "kernel"]
    expected = sum((p.load().activities["kind"] == "kernel").sum() for p in given)
    assert len(kernels) == expected
