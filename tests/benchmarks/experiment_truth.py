"""`Profile.sensitivity` against steps whose op is really left out.

::

    python -m tests.benchmarks.experiment_truth [--seeds 4] [--repeats 80] [--steps hidden]

Ten steps of known truth (`tests.benchmarks.shared.known_truth`), and models if their packages are
installed, each with several random durations. An experiment predicts what the op ``changed`` would
save if it took no time; then it is left out, in turns with the whole step. Fails if the truth is
within the predicted interval, give or take the scatter of its own measurement, in less than nine of
ten trials, or if the median error of the prediction is over 5 % of the step. Trials whose repeats
scatter too much are refused; they are counted, and neither right nor wrong.
"""

from __future__ import annotations

import argparse
import statistics
from typing import TYPE_CHECKING, NamedTuple

import epprof_nb
from epprof_nb.recording.delays.guarded_experiment import GuardedExperiment
from tests.benchmarks.shared.harness import header
from tests.benchmarks.shared.known_truth import STEPS, CudaDevice, HostDevice, Scale, timed
from tests.benchmarks.shared.model_steps import model_steps

if TYPE_CHECKING:
    from tests.benchmarks.shared.known_truth import Step

PROFILED = 3
"""Steps of a profile."""
MIN_WITHIN, MAX_ERROR = 0.9, 0.05
MARGIN = 0.02
"""Scatter of the median of a step, as a share of it."""


class Trial(NamedTuple):
    """Savings as shares of the step: the true one, and the predicted one with its interval."""

    true: float
    predicted: float
    low: float
    high: float

    @property
    def is_within(self) -> bool:
        """Whether the truth is in the interval."""
        return self.low - MARGIN <= self.true <= self.high + MARGIN


def trial(step: Step, device: HostDevice | CudaDevice, seed: int, repeats: int) -> Trial | None:
    """Predict what the op saves, and measure it; None if the experiment is refused."""
    base, without = Scale(seed), Scale(seed, "changed", 0)
    for scale in (base, without):
        timed(step, device, scale)  # the first launch of a kernel compiles it
    experiment = GuardedExperiment(repeats, lambda text: print(f"  {text}"), has_bar=False)
    experiment.prepare()
    with epprof_nb.profile(ort_nodes="every") as prof:
        for number in range(PROFILED):
            if number:
                epprof_nb.step()
            timed(step, device, base)
    experiment.begin(prof)
    while experiment.next():
        timed(step, device, base)
    if not prof.info["experiment"]["rounds"]:
        return None
    times: dict[Scale, list[float]] = {base: [], without: []}
    for at in range(9):
        for scale in (base, without) if at % 2 else (without, base):
            times[scale].append(timed(step, device, scale))
    true = 1 - statistics.median(times[without]) / statistics.median(times[base])
    wall_ns = prof.info["wall_ns"] / PROFILED
    row = prof.sensitivity().set_index("name").loc["changed"]
    columns = ("saving_if_free_ns", "saving_low_ns", "saving_high_ns")
    return Trial(true, *(float(row[column]) / wall_ns for column in columns))


def main() -> None:
    """Print one row per step, and fail if the intervals do not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=80)
    parser.add_argument("--steps", default="", help="only steps whose name contains this")
    parser.add_argument("--device", choices=["host", "cuda:0"], default="host")
    options = parser.parse_args()
    header("Savings predicted by experiments, in % of the step (medians), and the truth")
    device = HostDevice() if options.device == "host" else CudaDevice()
    print(
        f"{'step':<32}{'true':>8}{'predicted':>11}{'low':>8}{'high':>8}{'within':>9}{'refused':>9}"
    )
    trials = list[Trial]()
    for name, (step, _) in (STEPS | model_steps()).items():
        if options.steps not in name:
            continue
        tried = [trial(step, device, seed, options.repeats) for seed in range(options.seeds)]
        found = [made for made in tried if made is not None]
        trials += found
        if not found:
            print(f"{name:<32}{'':>44}{len(tried):>9}")
            continue
        true, predicted, low, high = (100 * statistics.median(v) for v in zip(*found, strict=True))
        within = sum(t.is_within for t in found)
        print(
            f"{name:<32}{true:>8.1f}{predicted:>11.1f}{low:>8.1f}{high:>8.1f}"
            f"{within:>4} of {len(found)}{len(tried) - len(found):>9}"
        )
    if not trials:
        raise SystemExit("All experiments were refused: the machine is too busy to measure.")
    share = sum(t.is_within for t in trials) / len(trials)
    error = statistics.median(abs(t.predicted - t.true) for t in trials)
    print(f"\ntruth within the interval in {share:.0%}; median error {error:.1%} of the step")
    if share < MIN_WITHIN or error > MAX_ERROR:
        raise SystemExit("The predictions do not hold.")


if __name__ == "__main__":
    main()
