"""Traces of PyTorch's ranks as a job: their kernels, durations and bytes are HTA's.

    python -m venv /tmp/hta && /tmp/hta/bin/pip install HolisticTraceAnalysis==0.5.0 "pandas<3"
    python -m tests.benchmarks.job_of_traces --peer /tmp/hta/bin/python sampled_rank-*.json.gz

The files are traces of the ranks of one launch, in this order. The ones named are in HTA's
repository (``tests/data/trace_filter``). Compared are, for each rank, the number and the time of
the activities of each name, the bytes of copies and memsets, and the durations of NCCL's kernels in
`Job.collectives`. HTA drops the fractions of microseconds at the begin and end of each event.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import epprof_nb
from epprof_nb.jobs.job import Job
from tests.benchmarks.shared.harness import header

DROPPED_US = 2

_PEER = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
files = dict(enumerate(sys.argv[1:]))
analysis = TraceAnalysis(trace_files=files, include_last_profiler_step=True)
names = analysis.t.symbol_table.get_sym_table()
found = []
for rank in files:
    frame = analysis.t.get_trace(rank)
    frame = frame[frame["stream"] >= 0]
    frame = frame.assign(label=[names[at] for at in frame["name"]],
                         kind=[names[at] for at in frame["cat"]])
    frame = frame[frame["kind"].isin(["kernel", "gpu_memcpy", "gpu_memset"])]
    copied = frame[frame["kind"] != "kernel"]
    by_name = frame.groupby("label")["dur"].agg(["size", "sum"])
    nccl = frame[frame["label"].str.startswith("nccl")].sort_values("ts")
    found.append({
        "names": {n: [int(c), float(d)] for n, c, d in by_name.itertuples()},
        "bytes": int(copied["bytes"].clip(lower=0).sum()) if "bytes" in copied else None,
        "collectives": nccl["dur"].tolist(),
    })
print(json.dumps(found))
"""


def of_peer(python: str, files: list[Path]) -> list[dict[str, Any]]:
    """Return what HTA has of each rank; times are in microseconds."""
    command = [python, "-c", _PEER, *map(str, files)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def of_json(file: Path) -> dict[str, Any]:
    """Return the same from the events of a file."""
    opened = gzip.open if file.suffix == ".gz" else open
    with opened(file, "rt", encoding="utf-8") as text:
        events = json.load(text)["traceEvents"]
    kinds = ("kernel", "gpu_memcpy", "gpu_memset")
    work = [event for event in events if event.get("cat") in kinds]
    count, time = Counter[str](), Counter[str]()
    for event in work:
        count[event["name"]] += 1
        time[event["name"]] += event["dur"]
    sizes = [e["args"].get("bytes", 0) for e in work if e["cat"] != "kernel"]
    nccl = sorted((e["ts"], e["dur"]) for e in work if e["name"].startswith("nccl"))
    return {
        "names": {name: [count[name], time[name]] for name in count},
        "bytes": sum(sizes),
        "collectives": [duration for _, duration in nccl],
    }


def of_job(job: Job, rank: int) -> dict[str, Any]:
    """Return the same from a job."""
    rows = job[rank].activities
    by_name = rows.groupby("name", observed=True)["duration_ns"].agg(["size", "sum"])
    waits = job.collectives()
    nccl = waits[waits["rank"] == rank].sort_values("arrive_ns")
    return {
        "names": {n: [int(c), d / 1e3] for n, c, d in by_name.itertuples()},
        "bytes": int(rows.loc[rows["kind"] != "kernel", "bytes"].sum()),
        "collectives": (nccl["duration_ns"] / 1e3).tolist(),
    }


def differences(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """Return what is not the same; times may differ by what HTA drops of each event."""
    found = [f"name {n!r}" for n in ours["names"].keys() ^ theirs["names"].keys()]
    for name in ours["names"].keys() & theirs["names"].keys():
        (count, time), (their_count, their_time) = ours["names"][name], theirs["names"][name]
        if count != their_count or abs(time - their_time) > DROPPED_US * count:
            found.append(f"{name!r}: {count} in {time} us, there {their_count} in {their_time} us")
    if theirs["bytes"] is not None and ours["bytes"] != theirs["bytes"]:
        found.append(f"{ours['bytes']} bytes, there {theirs['bytes']}")
    pairs = list(zip(ours["collectives"], theirs["collectives"], strict=False))
    if len(ours["collectives"]) != len(theirs["collectives"]):
        found.append("another number of collectives")
    found += [f"a collective of {a} us, there {b} us" for a, b in pairs if abs(a - b) > DROPPED_US]
    return found


def main() -> None:
    """Print what differs, and how much was compared."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--peer", help="Python with HolisticTraceAnalysis")
    given = parser.parse_args()
    header("Traces of ranks as a job")
    job = Job({rank: epprof_nb.read_trace(file) for rank, file in enumerate(given.files)})
    peers = of_peer(given.peer, given.files) if given.peer else [None] * len(given.files)
    for rank, file in enumerate(given.files):
        ours = of_job(job, rank)
        print(
            f"rank {rank}: {sum(count for count, _ in ours['names'].values()):,} activities of "
            f"{len(ours['names'])} names, {ours['bytes']:,} bytes, "
            f"{len(ours['collectives'])} collectives"
        )
        for name, theirs in (("the file", of_json(file)), ("HTA", peers[rank])):
            if theirs is not None:
                found = differences(ours, theirs)
                print(f"  {name}: {f'{len(found)} differences' if found else 'the same'}")
                for text in found[:5]:
                    print(f"    {text}")
    print(job.by_rank())


if __name__ == "__main__":
    main()
