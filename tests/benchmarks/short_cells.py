"""Cost of profiling short cells: first calls, a few forward passes and steps, graph replays.

Kernel records are those of CUPTI alone, also after a memset that takes over what CUPTI does at the
first launch. Without it, and without the paths of modules found before, a profile is unprepared.
Empty callbacks are a C function that CUPTI calls at launches, and that does nothing.
The works run as deep as in a notebook, and a profile as in a cell: it does not read the frames
around its code again; a variant reads all of them.
Each variant records the same work in every round, in several processes one after the other. Every
figure is the median over the rounds of a difference or ratio within a round, with its standard
error by the bootstrap. torch.profiler has a process of its own, because CUPTI serves one at a time.

Needs an NVIDIA GPU, PyTorch and transformers. ``--cpu`` only tries the program: each operator of
PyTorch launches work of the host device, and CUPTI's records are left out.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

# Lets torch.profiler give CUPTI back after each round.
os.environ["TEARDOWN_CUPTI"] = "1"

import epprof_nb  # before torch, as in notebooks

# isort: split
import torch
from torch import nn

from epprof_nb import _native
from epprof_nb.recording.torch.module_paths import ModulePaths
from tests.benchmarks.shared.harness import header, median_error
from tests.benchmarks.shared.host_launches import HostLaunches
from tests.benchmarks.shared.kernel_records import kernel_records, kernel_records_and_callbacks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Times = dict[str, dict[str, list[float]]]
    """Seconds by measurement, variant and round."""
    Work = Callable[[], dict[str, float]]
    """Runs some work and returns the seconds of its parts."""

UNPROFILED, RECORDS, AFTER_MEMSET = "unprofiled", "kernel records", "kernel records, memset"
CALLBACKS = "empty callbacks too"
OURS, UNPREPARED, TORCH = "epprof_nb", "epprof_nb, unprepared", "torch.profiler"
ALL_FRAMES = "epprof_nb, all frames"
ADD, FORWARD, STEP = "first y.add_(1)", "first forward pass", "first training step"
FORWARDS, STEPS = "10 forward passes", "4 training steps"
GPT2_STEP, GENERATION, REPLAY = "GPT-2 training step", "GPT-2 generation", "graph replay"
BEGIN = "begin"
SHORT, STEADY = ("add", "forwards", "steps"), ("gpt2_steps", "generation", "replays")
"""Works whose first call counts, and works that are measured after a first call."""
LAYERS, WIDTH, NODES, REPLAYS, TOKENS = 30, 256, 200, 200, 10
FRAMES = 25
"""Frames of the kernel and of IPython around a cell."""


class Goal(NamedTuple):
    """A limit for a variant over its base: seconds more, or a ratio.

    Attributes
    ----------
    measurement, variant, base
        What is compared.
    limit
        Greatest allowed difference in seconds or, if `is_ratio`, ratio.
    """

    measurement: str
    variant: str
    base: str
    limit: float
    is_ratio: bool


GOALS = (
    Goal(ADD, OURS, UNPROFILED, 100e-6, is_ratio=False),
    Goal(FORWARD, OURS, AFTER_MEMSET, 300e-6, is_ratio=False),
    Goal(FORWARDS, OURS, UNPROFILED, 1.10, is_ratio=True),
    Goal(STEPS, OURS, RECORDS, 1.10, is_ratio=True),
    Goal(GPT2_STEP, OURS, AFTER_MEMSET, 1.03, is_ratio=True),
    Goal(GENERATION, OURS, AFTER_MEMSET, 1.03, is_ratio=True),
    Goal(REPLAY, OURS, UNPROFILED, 1.10, is_ratio=True),
    Goal(BEGIN, OURS, UNPREPARED, 1e-3, is_ratio=False),
)


class Works:
    """The measured work, after its first run.

    The models are variables of ``__main__``, as in a notebook.

    Parameters
    ----------
    device
        ``"cuda"`` or ``"cpu"``.
    names
        The methods that `runs` has.
    """

    def __init__(self, device: str, names: Sequence[str]) -> None:
        self._device = device
        self.runs: dict[str, Work] = {name: getattr(self, name) for name in names}
        torch.manual_seed(0)
        blocks = [(nn.Linear(WIDTH, WIDTH), nn.GELU()) for _ in range(LAYERS)]
        model = nn.Sequential(*(module for block in blocks for module in block)).to(device)
        self._model = globals()["model"] = model
        self._optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        self._x = torch.randn(32, WIDTH, device=device)
        self._y = torch.zeros(16, device=device)
        if {"gpt2_steps", "generation"} & {*names}:
            from tests.benchmarks.shared.transformers_work import generation, gpt2, training_step

            with torch.device(device):
                trained, generating = (gpt2(device, small=device == "cpu") for _ in range(2))
            globals().update(trained=trained, generating=generating)
            self._gpt2_step = training_step(trained, device)
            self._generate = generation(generating, device, tokens=TOKENS)
        if "replays" in names:
            self._replay = self._graph() if device == "cuda" else self._many_adds
        for work in self.runs.values():
            work()
            work()

    def _many_adds(self) -> None:
        for _ in range(NODES):
            self._y.add_(1)

    def _graph(self) -> Callable[[], None]:
        graph = torch.cuda.CUDAGraph()
        self._many_adds()
        self._synchronize()
        with torch.cuda.graph(graph):
            self._many_adds()
        return graph.replay

    def _synchronize(self) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()

    def _forward(self) -> object:
        with torch.no_grad():
            return self._model(self._x)

    def _step(self) -> None:
        self._model(self._x).square().mean().backward()
        self._optimizer.step()
        self._optimizer.zero_grad()

    def _first_and_all(self, run: Callable[[], object], count: int) -> tuple[float, float]:
        """Return the host's seconds of the first call, and those of all with their work."""
        self._synchronize()
        begin = time.perf_counter()
        run()
        first = time.perf_counter() - begin
        for _ in range(count - 1):
            run()
        self._synchronize()
        return first, time.perf_counter() - begin

    def add(self) -> dict[str, float]:
        """Add 1 to a small tensor."""
        return {ADD: self._first_and_all(lambda: self._y.add_(1), 1)[0]}

    def forwards(self) -> dict[str, float]:
        """Make ten forward passes."""
        return dict(zip((FORWARD, FORWARDS), self._first_and_all(self._forward, 10), strict=True))

    def steps(self) -> dict[str, float]:
        """Make four training steps."""
        return dict(zip((STEP, STEPS), self._first_and_all(self._step, 4), strict=True))

    def _later(self, run: Callable[[], object], count: int) -> float:
        """Return the seconds of a call, after a first one."""
        run()
        return self._first_and_all(run, count)[1] / count

    def gpt2_steps(self) -> dict[str, float]:
        """Make training steps of GPT-2."""
        return {GPT2_STEP: self._later(self._gpt2_step, 2)}

    def generation(self) -> dict[str, float]:
        """Generate text with GPT-2."""
        return {GENERATION: self._later(self._generate, 1)}

    def replays(self) -> dict[str, float]:
        """Replay a graph of small kernels."""
        return {REPLAY: self._later(self._replay, REPLAYS)}


@contextmanager
def ours(*, prepares: bool = True) -> Iterator[object]:
    """Profile as a cell does; without `prepares`, nothing is done before the first call."""
    with epprof_nb.profile() if prepares else _Unprepared() as profile:
        _native.stay_in_function(2)  # in `measure`: this and contextlib's __enter__ are above it
        try:
            yield profile
        finally:
            _native.leave_function()


class _Unprepared:
    """A profile without the memset and without the paths of modules before the profiled code."""

    def __enter__(self) -> object:
        launch, find = _native.cupti_first_launch, ModulePaths.find_models
        _native.cupti_first_launch = lambda: False
        ModulePaths.find_models = ModulePaths.forget  # type: ignore[method-assign]
        try:
            self._profile = epprof_nb.profile()
            return self._profile.__enter__()
        finally:
            _native.cupti_first_launch, ModulePaths.find_models = launch, find  # type: ignore[method-assign]

    def __exit__(self, *error: object) -> None:
        self._profile.__exit__(*error)


def torch_profiler() -> AbstractContextManager[object]:
    """Return torch.profiler with its usual activities."""
    return torch.profiler.profile()


def variants(device: str) -> dict[str, Callable[[], AbstractContextManager[object]]]:
    """Return the variants of the processes without torch.profiler."""
    if device == "cpu":
        records = after_memset = callbacks = nullcontext
    else:
        records, after_memset = kernel_records, lambda: kernel_records(memset=True)
        callbacks = kernel_records_and_callbacks
    return {
        UNPROFILED: nullcontext,
        RECORDS: records,
        AFTER_MEMSET: after_memset,
        CALLBACKS: callbacks,
        UNPREPARED: lambda: ours(prepares=False),
        OURS: ours,
        ALL_FRAMES: epprof_nb.profile,
    }


def measure(device: str, rounds: int, names: Sequence[str], *, of_torch: bool) -> Times:
    """Return the times of the named works in this process."""
    works = Works(device, names)
    chosen = {UNPROFILED: nullcontext, TORCH: torch_profiler} if of_torch else variants(device)
    steady = {name: chosen[name] for name in chosen if name not in {RECORDS, UNPREPARED}}
    times: Times = defaultdict(lambda: defaultdict(list))
    launching: Any = HostLaunches if device == "cpu" else nullcontext
    gc.collect()
    gc.freeze()  # the collections between rounds then take no time
    for name_of_work, work in works.runs.items():
        order = list(chosen if name_of_work in SHORT else steady)
        for number in range(-1, rounds):  # the first round does not count
            for name in order:
                gc.collect()
                begin = time.perf_counter()
                with chosen[name]() as recorded:
                    begun = time.perf_counter() - begin
                    with launching():
                        parts = work()
                if isinstance(recorded, epprof_nb.Profile) and not len(recorded.activities):
                    raise SystemExit(f"a profile has no activities: {recorded.info['notes']}")
                if name_of_work == "add" and name != UNPROFILED:
                    parts[BEGIN] = begun
                for part, seconds in parts.items() if number >= 0 else ():
                    times[part][name].append(seconds)
            order = order[1:] + order[:1]
    return {part: {name: times[part][name] for name in chosen if name in times[part]}
            for part in times}  # fmt: skip


def as_deep_as_in_a_notebook(function: Callable[[], Times], frames: int = FRAMES) -> Times:
    """Call a function with this number of frames around it."""
    return as_deep_as_in_a_notebook(function, frames - 1) if frames else function()


def processes(options: argparse.Namespace) -> Iterator[tuple[bool, Times]]:
    """Yield whether torch.profiler was measured, and the times, for each process."""
    for of_torch, rounds, count in (
        (False, -(-options.pairs // options.processes), options.processes),
        (True, options.torch_pairs, 1),
    ):
        for _ in range(count if rounds else 0):
            command = [sys.executable, "-m", __spec__.name, f"--child={rounds}"]
            command += ["--cpu"] * options.cpu + ["--torch-profiler"] * of_torch
            command += ["--only", *options.only]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
            if done.returncode:
                raise SystemExit(f"a process failed: {' '.join(command)}")
            yield of_torch, json.loads(done.stdout.splitlines()[-1])


def _paired(
    times: dict[str, list[float]], variant: str, base: str, *, is_ratio: bool
) -> tuple[float, float]:
    """Return the median of a variant over its base and the standard error."""
    pairs = zip(times[variant], times[base], strict=True)
    values = [a / b if is_ratio else a - b for a, b in pairs]
    return statistics.median(values), median_error(values)


def _number(value: float, error: float, *, is_ratio: bool) -> str:
    if is_ratio:
        return f"{value:.3f} +- {error:.3f}x"
    return f"{value * 1e6:,.0f} +- {error * 1e6:,.0f} us"


def show_times(times: Times, bases: Sequence[str]) -> None:
    """Print the median of each variant, and its ratios to the bases."""
    for measurement, by_variant in times.items():
        print(f"{measurement} ({len(next(iter(by_variant.values())))} pairs)")
        for variant, seconds in by_variant.items():
            own = _number(statistics.median(seconds), median_error(seconds), is_ratio=False)
            over = "".join(
                f"   {_number(*_paired(by_variant, variant, base, is_ratio=True), is_ratio=True)}"
                f" of {base}" for base in bases if base in by_variant and base != variant
            )  # fmt: skip
            print(f"  {variant:22} {own:>20}{over}")


def show_goals(times: Times) -> None:
    """Print each goal, its figure, and whether it is met."""
    print(f"\n{'measurement':22} {'over':22} {'at most':>9}   {'figure':>19}")
    for goal in GOALS:
        if goal.measurement not in times:
            continue
        figure = _paired(times[goal.measurement], goal.variant, goal.base, is_ratio=goal.is_ratio)
        limit = f"{goal.limit:.2f}x" if goal.is_ratio else f"{goal.limit * 1e6:,.0f} us"
        met = "met" if figure[0] <= goal.limit else "NOT MET"
        shown = _number(*figure, is_ratio=goal.is_ratio)
        print(f"{goal.measurement:22} {goal.base:22} {limit:>9}   {shown:>19}   {met}")


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--processes", type=int, default=2, help="that share the pairs")
    parser.add_argument("--torch-pairs", type=int, default=4, help="with torch.profiler; or 0")
    parser.add_argument("--only", nargs="+", choices=SHORT + STEADY, default=SHORT + STEADY)
    parser.add_argument("--cpu", action="store_true", help="only try the program, without a GPU")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--torch-profiler", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    device = "cpu" if options.cpu else "cuda"
    if options.child:
        torch.set_num_threads(1)
        times = as_deep_as_in_a_notebook(
            lambda: measure(device, options.child, options.only, of_torch=options.torch_profiler)
        )
        print(json.dumps(times))
        return
    header(f"Short cells, PyTorch {torch.__version__} on "
           f"{'the host device' if options.cpu else torch.cuda.get_device_name()}")  # fmt: skip
    begin = time.perf_counter()
    found: tuple[Times, Times] = ({}, {})
    for of_torch, times in processes(options):
        for measurement, by_variant in times.items():
            for variant, seconds in by_variant.items():
                merged = found[of_torch].setdefault(measurement, {})
                merged.setdefault(variant, []).extend(seconds)
    show_times(found[0], (UNPROFILED, AFTER_MEMSET, CALLBACKS))
    if found[1]:
        print("\ntorch.profiler, in a process of its own")
        show_times(found[1], (UNPROFILED,))
    show_goals(found[0])
    print(f"took {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
