"""Cost of the Python stacks of launches in transformers, and what torch.profiler asks for them.

1. A training step and a generation of GPT-2. Reading stacks is switched on and off within one
   profile, in the order on, off, off, on.
2. The step under torch.profiler with ``with_stack=True``: kernels with a Python stack, cost, and
   the time from the last step to tables by stack.
3. Memory that stacks add to many launches: processes with stacks and without.

Needs an NVIDIA GPU, PyTorch and transformers. ``--cpu`` only tries the program: each operator of
PyTorch launches work of the host device.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Lets epprof_nb record after torch.profiler has, and the reverse.
os.environ["TEARDOWN_CUPTI"] = "1"

import epprof_nb  # before torch, as in notebooks

# isort: split
import torch
from torch.profiler import ProfilerActivity

from epprof_nb import _native, host
from tests.benchmarks.python_stacks import deeper, first_sights
from tests.benchmarks.shared.harness import header, median_bounds
from tests.benchmarks.shared.host_launches import HostLaunches

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.autograd.profiler_util import FunctionEvent

_OUTER = _INNER = 100
"""Functions that call, and functions that launch: their product is the number of stacks."""
_DEPTH = 20
_ROUNDS = 2


def launching(device: str) -> AbstractContextManager[object]:
    """Return the context in which PyTorch's operators launch work."""
    return HostLaunches() if device == "cpu" else nullcontext()


def switched(name: str, run: Callable[[], object], device: str, pairs: int) -> None:
    """Print the time of runs with stacks over those without."""
    from tests.benchmarks.shared.transformers_work import seconds

    times: dict[bool, list[float]] = {True: [], False: []}
    gc.collect()
    gc.freeze()
    with epprof_nb.profile(frameworks=["torch"]) as prof, launching(device):
        for number in range(-8, 2 * pairs):
            is_on = number % 4 in {0, 3}
            (_native.resume_stacks if is_on else _native.pause_stacks)()
            took = seconds(run, device)
            if number >= 0:
                times[is_on].append(took)
        _native.resume_stacks()
    gc.unfreeze()
    ratios = [on / off for on, off in zip(times[True], times[False], strict=True)]
    low, high = median_bounds(ratios)
    launches = len(prof.activities) / (2 * pairs + 8)
    print(
        f"{name}: {pairs} pairs, {launches:,.0f} activities a run, "
        f"{statistics.median(times[False]) * 1e3:.2f} ms without stacks, with "
        f"x {statistics.median(ratios):.4f} (95 % bounds {low:.4f} to {high:.4f}); "
        f"{prof.activities['stack_id'].notna().mean():.1%} of all have a stack, "
        f"{len(prof.stacks):,} frames in the tree",
        flush=True,
    )


def epprof_run(run: Callable[[], object], device: str, steps: int) -> float:
    """Print what this package records and takes; return the median of a step over unprofiled."""
    from tests.benchmarks.shared.transformers_work import seconds

    with launching(device):
        without = [seconds(run, device) for _ in range(2 * steps)]
        with epprof_nb.profile() as prof:
            took = [seconds(run, device) for _ in range(steps)]
            begin = time.perf_counter()
    recorded = time.perf_counter()
    prof.by_line()
    by_line = time.perf_counter()
    prof.by_stack()
    by_stack = time.perf_counter()
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    own = prof.stacks["owner"].isin(["own", "cell"])
    with_own = prof.joined()["function"][kernels.index].notna().sum() if own.any() else 0
    ratio = statistics.median(took) / statistics.median(without)
    print(
        f"  {'epprof_nb':24} step x {ratio:.3f}; {kernels['stack_id'].notna().sum():,} of "
        f"{len(kernels):,} kernels with a stack ({with_own:,} with a line of the user); end "
        f"{(recorded - begin) * 1e3:,.0f} ms, by_line {(by_line - recorded) * 1e3:,.0f} ms, "
        f"by_stack {(by_stack - by_line) * 1e3:,.0f} ms: {(by_stack - begin) * 1e3:,.0f} ms",
        flush=True,
    )
    return ratio


def torch_run(run: Callable[[], object], device: str, steps: int, *, verbose: bool) -> None:
    """Print what torch.profiler records and takes."""
    from tests.benchmarks.shared.transformers_work import seconds

    without = [seconds(run, device) for _ in range(2 * steps)]
    activities = [ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(ProfilerActivity.CUDA)
    config = torch._C._profiler._ExperimentalConfig(verbose=True) if verbose else None

    def profiler() -> Any:
        return torch.profiler.profile(
            activities=activities, with_stack=True, experimental_config=config
        )

    with profiler():  # the first one loads CUPTI
        run()
    with profiler() as prof:
        took = [seconds(run, device) for _ in range(steps)]
        begin = time.perf_counter()
    recorded = time.perf_counter()
    table = prof.key_averages(group_by_stack_n=5).table(sort_by="cpu_time_total", row_limit=50)
    tabled = time.perf_counter()
    kernels = with_stack = below_stack = 0
    for event in prof.events():
        launched = [k for k in event.kernels if not k.name.startswith(("Memcpy", "Memset"))]
        kernels += len(launched)
        with_stack += len(launched) * bool(event.stack)
        below_stack += len(launched) * _has_stack(event)
    name = "with_stack, verbose" if verbose else "with_stack"
    print(
        f"  {name:24} step x {statistics.median(took) / statistics.median(without):.3f}; "
        f"{with_stack:,} of {kernels:,} kernels with a stack ({below_stack:,} below an event with "
        f"one); end {(recorded - begin) * 1e3:,.0f} ms, table {(tabled - recorded) * 1e3:,.0f} ms: "
        f"{(tabled - begin) * 1e3:,.0f} ms ({len(table):,} characters)",
        flush=True,
    )


def _has_stack(event: FunctionEvent | None) -> bool:
    """Whether an event or one around it has a Python stack."""
    while event is not None:
        if event.stack:
            return True
        event = event.cpu_parent
    return False


def many_launches(device: str, launches: int, *, stacks: bool) -> None:
    """Launch from many stacks, and print the memory of this process as JSON, in MiB."""
    if device == "cuda":
        tensor = torch.zeros(16, device="cuda")
        launch: Callable[[], object] = lambda: tensor.add_(1)  # noqa: E731
    else:
        launch = lambda: host.launch(int)  # noqa: E731
    names: dict[str, Any] = {"launch": launch, "deeper": deeper, "depth": _DEPTH}
    for i in range(_INNER):
        exec(f"def inner_{i}():\n    launch()", names)
        exec(f"def outer_{i}(inner):\n    deeper(depth, inner)", names)
    inner = [names[f"inner_{i}"] for i in range(_INNER)]
    outer = [names[f"outer_{i}"] for i in range(_OUTER)]
    launch()
    before = _resident()
    with epprof_nb.profile(frameworks=[], stacks=stacks) as prof:
        for _ in range(max(launches // (_OUTER * _INNER), 1)):
            for call in outer:
                for function in inner:
                    call(function)
        recorded = _resident()
    built = _resident()
    sizes = {
        "recorded": recorded - before,
        "built": built - before,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before,
        "activities": len(prof.activities),
        "frames": len(prof.stacks),
    }
    print(json.dumps(sizes))


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def memory(device: str, launches: int) -> None:
    """Print the memory that stacks add, by processes that launch at the same time."""
    command = [sys.executable, "-m", __spec__.name, f"--launches={launches}"]
    command += ["--cpu"] if device == "cpu" else []
    children = [
        (stacks, subprocess.Popen([*command, f"--child={stacks}"], stdout=subprocess.PIPE))
        for _ in range(_ROUNDS)
        for stacks in ("on", "off")
    ]
    found: dict[str, list[dict[str, float]]] = {"on": [], "off": []}
    for stacks, child in children:
        output, _ = child.communicate()
        if child.returncode:
            raise SystemExit(f"the process with stacks {stacks} failed")
        found[stacks].append(json.loads(output.splitlines()[-1]))
    first = found["on"][0]
    print(
        f"{first['activities']:,} activities from {_OUTER * _INNER:,} stacks, "
        f"{first['frames']:,} frames in the tree; MiB with and without stacks:"
    )
    for name in ("recorded", "built", "peak"):
        on, off = ([sizes[name] for sizes in found[stacks]] for stacks in ("on", "off"))
        added = statistics.median(on) - statistics.median(off)
        each = f"{', '.join(f'{x:.0f}' for x in on)} and {', '.join(f'{x:.0f}' for x in off)}"
        print(f"  {name:9} {each}: {added:+.1f}")
    print(flush=True)


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=300, help="of training steps")
    parser.add_argument("--generations", type=int, default=100, help="pairs of generations")
    parser.add_argument("--tokens", type=int, default=8, help="of a generation")
    parser.add_argument("--steps", type=int, default=3, help="under each profiler")
    parser.add_argument("--launches", type=int, default=1_000_000, help="to measure memory")
    parser.add_argument("--cpu", action="store_true", help="only try the program, without a GPU")
    parser.add_argument("--child", choices=("on", "off"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    device = "cpu" if options.cpu else "cuda"
    if options.child:
        many_launches(device, options.launches, stacks=options.child == "on")
        return
    from tests.benchmarks.shared.transformers_work import generation, gpt2, training_step

    header(f"Python stacks of transformers, PyTorch {torch.__version__} on "
           f"{'the host device' if options.cpu else torch.cuda.get_device_name()}")  # fmt: skip
    begin = time.perf_counter()
    model = gpt2(device, small=options.cpu)
    generate = generation(model, device, tokens=options.tokens)
    switched("generation", generate, device, options.generations)
    step = training_step(model, device)
    switched("training step", step, device, options.pairs)
    print(f"\n{options.steps} training steps: time over unprofiled, kernels, time to tables")
    epprof_run(step, device, options.steps)
    for verbose in (False, True):
        torch_run(step, device, options.steps, verbose=verbose)
    print()
    memory(device, options.launches)
    first_sights(10_000, 10)
    print(f"took {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
