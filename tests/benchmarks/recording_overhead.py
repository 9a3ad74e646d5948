"""Overhead of recording a loop of tiny kernels with one op per launch, and of its peers.

Needs an NVIDIA GPU and PyTorch; Triton's Proton where it is installed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time

import torch

import epprof_nb
from epprof_nb import _native
from epprof_nb.recording.cupti.layouts import layout_for
from tests.benchmarks.shared.harness import header, paired, show

LAUNCHES = 100_000


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=LAUNCHES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", action="store_true", help="also torch.profiler and Proton")
    parser.add_argument("--proton", action="store_true", help="only Proton")
    args = parser.parse_args()
    header(f"{args.launches:,} tiny kernels on {torch.cuda.get_device_name()}, one op a launch")
    x = torch.zeros(16, device="cuda")
    n = args.launches

    def unmarked() -> None:
        for _ in range(n):
            x.add_(1)

    def marked() -> None:
        op = epprof_nb.op
        for _ in range(n):
            with op("launch"):
                x.add_(1)

    def timed(body) -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        body()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    def ops_only() -> float:
        _native.set_recording(ops=True, launches=False)
        seconds = timed(marked)
        _native.set_recording(ops=False, launches=False)
        _native.drain_ops(_native.now_ns(), open_too=False)
        return seconds

    if args.proton:
        proton(timed, unmarked, x, n, max(2, args.rounds // 2))
        return
    epprof_version: dict[str, str] = {}
    joined: list[float] = []
    held: list[float] = []

    def profiled(**options):
        def run() -> float:
            with epprof_nb.profile(**options) as prof:
                begin = time.perf_counter()
                marked()
                torch.cuda.synchronize()
                seconds = time.perf_counter() - begin
                ended = time.perf_counter()
            if not options:
                # To all three DataFrames, from the end of the loop's work.
                frames = prof.ops, prof.activities, prof.api_calls
                joined.append(time.perf_counter() - ended)
                kernels = frames[1][frames[1]["kind"] == "kernel"]
                epprof_version.update(prof.info["versions"])
                assert len(kernels) == n, (len(kernels), prof.info["recorded"])
                assert kernels["op_id"].nunique() == n
                held.append(sum(table.nbytes for table in prof.tables.values()) / n)
            return seconds

        return run

    variants = {
        "loop, unmarked": lambda: timed(unmarked),
        "ops marked, no session": lambda: timed(marked),
        "ops recorded, no CUPTI": ops_only,
        "epprof_nb, default": profiled(),
        "epprof_nb, detail=api": profiled(detail="api"),
        "epprof_nb, detail=memory": profiled(detail="memory"),
        "epprof_nb, detail=overhead": profiled(detail="overhead"),
        "epprof_nb, detail=all": profiled(detail="all"),
    }
    timed(marked)
    profiled()()
    show(
        paired(variants, args.rounds),
        ("loop, unmarked", "ops recorded, no CUPTI"),
        "us a launch",
        1e6 / n,
    )
    joined.sort()
    print(
        f"end of the work to joined DataFrames: {joined[len(joined) // 2] * 1e3:.1f} ms "
        f"(least {joined[0] * 1e3:.1f}) for {n:,} launches\n"
    )
    version = int(epprof_version["cupti"])
    raw = layout_for(version).records["kernel"].size
    print(
        f"tables: {held[-1]:.0f} bytes a launch, {held[-1] / raw:.2f} x its raw kernel record "
        f"of {raw} bytes\n"
    )
    if args.peers:
        peers(timed, unmarked, x, n, args.rounds)


def peers(timed, unmarked, x, n: int, rounds: int) -> None:
    """torch.profiler and Proton on the same loop. They come last: they leave hooks behind."""
    from torch.profiler import ProfilerActivity, profile, record_function

    def labelled() -> None:
        for _ in range(n):
            with record_function("launch"):
                x.add_(1)

    stops: list[float] = []

    def torch_profiler(activities, body):
        def run() -> float:
            prof = profile(activities=activities)
            prof.start()
            seconds = timed(body)
            begin = time.perf_counter()
            prof.stop()
            stops.append(time.perf_counter() - begin)
            return seconds

        return run

    both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    variants = {
        "loop, unmarked": lambda: timed(unmarked),
        "torch.profiler, CUDA": torch_profiler([ProfilerActivity.CUDA], unmarked),
        "torch.profiler, CPU+CUDA": torch_profiler(both, unmarked),
        "torch.profiler, CPU+CUDA, record_function": torch_profiler(both, labelled),
    }
    show(paired(variants, max(2, rounds // 2)), ("loop, unmarked",), "us a launch", 1e6 / n)
    print(f"torch.profiler's stop() alone: {sorted(stops)[len(stops) // 2] * 1e3:.0f} ms\n")
    # In a separate process: torch.profiler remains CUPTI's only subscriber.
    subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.benchmarks.recording_overhead",
            "--proton",
            "--launches",
            str(n),
        ],
        check=False,
    )


def proton(timed, unmarked, x, n: int, rounds: int) -> None:
    """Triton's Proton with one scope per launch."""
    try:
        from triton import profiler
    except ImportError:
        print("Proton is not installed")
        return

    def scoped() -> None:
        for _ in range(n):
            with profiler.scope("launch"):
                x.add_(1)

    def run() -> float:
        with tempfile.TemporaryDirectory() as folder:
            session = profiler.start(f"{folder}/proton")
            seconds = timed(scoped)
            profiler.finalize(session)
        return seconds

    variants = {"loop, unmarked": lambda: timed(unmarked), "Proton, a scope a launch": run}
    show(paired(variants, rounds), ("loop, unmarked",), "us a launch", 1e6 / n)


if __name__ == "__main__":
    main()
