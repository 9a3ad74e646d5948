"""Kineto traces: time and memory of reading, totals, and time of breakdowns; the peer is HTA.

    python -m venv /tmp/hta && /tmp/hta/bin/pip install HolisticTraceAnalysis==0.5.0 "pandas<3"
    python -m tests.benchmarks.read_trace --peer /tmp/hta/bin/python

PyTorch records a training step on the CPU (in this environment, or in that of ``--torch``). The
trace is repeated until it has the size of ``--sizes``. PyTorch on a CPU records no kernels, so a
second trace has a launch and a kernel for each operator that has none inside, in Kineto's format.

Both readers load a trace from a file into DataFrames in a separate process, in turns. Memory is the
peak above the memory of the imports. The number of kernels and their time are compared with the sum
over the events in the JSON text. For traces with kernels, each reader then computes the breakdown
of the device time, the time of each kernel, and the idle time.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import orjson

from tests.benchmarks.shared.harness import header, paired, show

_RECORD = """
import sys, torch
from torch.profiler import ProfilerActivity, profile, record_function
torch.set_num_threads(1)
layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 6)
optimizer = torch.optim.AdamW(model.parameters())
def step():
    model(torch.randn(8, 16, 64)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
step()
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
    for number in range(4):
        with record_function(f"ProfilerStep#{number}"):
            step()
recorded.export_chrome_trace(sys.argv[1])
"""
_PEAK = """
from pathlib import Path
def status(field):
    text = Path("/proc/self/status").read_text()
    return int(text.split(field + ":")[1].split()[0]) * 1024
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS")
begin = time.perf_counter(), time.process_time()
"""
_LOADED = """
loaded = time.perf_counter() - begin[0], time.process_time() - begin[1], status("VmHWM") - before
"""
_SHOW = """
print(json.dumps({"wall_s": loaded[0], "cpu_s": loaded[1], "bytes": loaded[2],
                  "kernels": int(kernels), "device_ns": float(device_ns),
                  "breakdowns_s": time.process_time() - begin[1] - loaded[1]}))
"""
_READ = f"""
import json, sys, time
import orjson, pandas, epprof_nb.profiles, epprof_nb.files.readers.kineto
from epprof_nb.testing import synthetic_profile
def breakdowns(profile):
    return profile.overlap(), profile.by_kernel(), profile.gaps()
breakdowns(synthetic_profile(activities=200))  # imports, as the peer's below
{_PEAK}
trace = epprof_nb.read_trace(sys.argv[1])
frames = trace.ops, trace.activities, trace.api_calls
of_kernels = frames[1][frames[1]["kind"] == "kernel"]["duration_ns"]
kernels, device_ns = len(of_kernels), of_kernels.sum()
{_LOADED}
if kernels:
    breakdowns(trace)
{_SHOW}"""
_PEER = f"""
import json, logging, sys, time
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
{_PEAK}
analysis = TraceAnalysis(trace_files={{0: sys.argv[1]}}, include_last_profiler_step=True)
frame = analysis.t.get_trace(0)
of_kernels = frame[frame["stream"] >= 0]["dur"]
kernels, device_ns = len(of_kernels), of_kernels.sum() * 1000
{_LOADED}
if kernels:
    analysis.get_temporal_breakdown(visualize=False)
    analysis.get_gpu_kernel_breakdown(visualize=False)
    analysis.get_idle_time_breakdown(visualize=False)
{_SHOW}"""


def recorded(torch: str, folder: Path) -> dict[str, Any]:
    """A trace that PyTorch makes of four training steps."""
    path = folder / "recorded.json"
    subprocess.run([torch, "-c", _RECORD, path], check=True, stderr=subprocess.DEVNULL)
    trace: dict[str, Any] = orjson.loads(path.read_bytes())
    return trace


def with_kernels(trace: dict[str, Any]) -> dict[str, Any]:
    """The trace with a launch and a kernel for each operator that has none inside."""
    operators = [
        e for e in trace["traceEvents"] if e.get("cat") == "cpu_op" and e.get("dur", 0) > 2
    ]
    operators.sort(key=lambda event: (event["tid"], event["ts"]))
    added: list[dict[str, Any]] = []
    free = 0.0
    for event, following in zip(operators, [*operators[1:], None], strict=True):
        end = event["ts"] + event["dur"]
        if following and following["tid"] == event["tid"] and following["ts"] < end:
            continue
        correlation, start = len(added) + 1, event["ts"] + event["dur"] / 4
        launch = {
            "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": event["pid"],
            "tid": event["tid"], "ts": start, "dur": event["dur"] / 4,
            "args": {"External id": correlation, "cbid": 211, "correlation": correlation},
        }  # fmt: skip
        free = max(free, start + 3) + 1
        kernel = {
            "ph": "X", "cat": "kernel", "name": f"void kernel_of<{event['name']}>(float*)",
            "pid": 0, "tid": 7, "ts": free, "dur": event["dur"],
            "args": {"External id": correlation, "device": 0, "context": 1, "stream": 7,
                     "correlation": correlation, "registers per thread": 32,
                     "shared memory": 0, "grid": [64, 1, 1], "block": [128, 1, 1]},
        }  # fmt: skip
        free += event["dur"]
        added += [launch, kernel]
    return {**trace, "traceEvents": trace["traceEvents"] + added}


def repeated(trace: dict[str, Any], size: int, path: Path) -> None:
    """Repeat the trace until the file has `size` bytes, one repeat after the other."""
    timed = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    others = [event for event in trace["traceEvents"] if event.get("ph") == "M"]
    first = min(event["ts"] for event in timed)
    span = max(event["ts"] + event["dur"] for event in timed) - first + 1_000
    numbers = max((event.get("args") or {}).get("correlation", 0) for event in timed) + 1
    head = {key: value for key, value in trace.items() if key != "traceEvents"}
    with path.open("wb") as file:
        file.write(orjson.dumps(head)[:-1] + b',"traceEvents":[')
        file.write(b",\n".join(map(orjson.dumps, others)))
        number = 0
        while number == 0 or file.tell() < size:
            for event in timed:
                moved = copy.copy(event)
                moved["ts"] = round(event["ts"] + number * span, 3)
                if "correlation" in (event.get("args") or {}):
                    shifted = event["args"]["correlation"] + number * numbers
                    moved["args"] = {
                        **event["args"],
                        "correlation": shifted,
                        "External id": shifted,
                    }
                file.write(b",\n" + orjson.dumps(moved))
            number += 1
        file.write(b"]}")


def totals(path: Path) -> tuple[int, float]:
    """Number of kernels and their time in nanoseconds, from the JSON text alone."""
    with path.open(encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    return len(kernels), sum(event["dur"] for event in kernels) * 1_000


def load(python: str, program: str, path: Path) -> dict[str, Any]:
    """Run a program that loads a trace, and return what it measured."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-c", program, path], check=True, capture_output=True, text=True, env=environment
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(path: Path, peer: str | None, rounds: int) -> None:
    """Print the time and memory of both readers for a trace."""
    size, (kernels, device_ns) = path.stat().st_size, totals(path)
    print(f"{path.stem}: {size / 1e6:.0f} MB, {kernels:,} kernels, {device_ns / 1e9:.6f} s of them")
    programs = {"epprof_nb": (sys.executable, _READ)}
    if peer:
        programs["HTA"] = (peer, _PEER)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in programs}

    def measured(name: str) -> float:
        found[name].append(load(*programs[name], path))
        return float(found[name][-1]["cpu_s"])

    results = paired({name: lambda name=name: measured(name) for name in programs}, rounds)
    show(results, ("epprof_nb",), "s of CPU", 1)
    if kernels:
        of_breakdowns = {
            name: [run["breakdowns_s"] for run in runs] for name, runs in found.items()
        }
        print("  breakdowns:")
        show(of_breakdowns, ("epprof_nb",), "s of CPU", 1)
    for name, runs in found.items():
        walls, peak = [run["wall_s"] for run in runs], max(run["bytes"] for run in runs)
        equal = runs[0]["kernels"] == kernels and abs(runs[0]["device_ns"] - device_ns) <= kernels
        print(
            f"  {name:9} {min(walls):7.2f} s wall (least); memory {peak / size:.2f} x the file; "
            f"kernels {runs[0]['kernels']:,}, {runs[0]['device_ns'] / 1e9:.6f} s: "
            f"{'as in the file' if equal else 'not as in the file'}"
        )
    print()


def main() -> None:
    """Print a comparison for each size, without and with kernels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="Python with HolisticTraceAnalysis")
    parser.add_argument("--torch", default=sys.executable, help="Python with PyTorch")
    parser.add_argument("--sizes", type=float, nargs="+", default=[5, 50], help="MB")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    header("Kineto traces")
    with tempfile.TemporaryDirectory() as name:
        trace = recorded(args.torch, Path(name))
        for what, made in (("host", trace), ("host_and_kernels", with_kernels(trace))):
            for size in args.sizes:
                path = Path(name) / f"{what}_{size:g}.json"
                repeated(made, int(size * 1e6), path)
                compare(path, args.peer, args.rounds)
                path.unlink()


if __name__ == "__main__":
    main()
