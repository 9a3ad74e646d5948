"""`Profile.what_if` against steps whose op is really left out, or takes half its time.

::

    python -m tests.benchmarks.what_if_truth [--seeds 4] [--steps hidden] [--device cuda:0]

Ten steps of known truth, and models if their packages are installed, each with several random
durations and two factors: with four seeds, 96 trials. The prediction is made from a profile of
unchanged steps; the truth is the median of unprofiled steps with and without the change, in turns.
Fails if the median error is over 5 % of the step.
"""

from __future__ import annotations

import argparse
import statistics
from typing import TYPE_CHECKING, NamedTuple

import epprof_nb
from tests.benchmarks.shared.harness import header
from tests.benchmarks.shared.known_truth import STEPS, CudaDevice, HostDevice, Scale, timed
from tests.benchmarks.shared.model_steps import model_steps

if TYPE_CHECKING:
    from tests.benchmarks.shared.known_truth import Step

MAX_ERROR = 0.05
MARGIN = 0.02
"""Scatter of a step that a bound is given."""
PROFILED = 3
"""Steps of a profile."""


class Trial(NamedTuple):
    """Savings as shares of the step: the true one, the predicted one and its upper bound."""

    true: float
    predicted: float
    most: float

    @property
    def error(self) -> float:
        """Distance of the prediction from the truth."""
        return abs(self.predicted - self.true)

    @property
    def is_within(self) -> bool:
        """Whether the truth is within the bounds."""
        return self.predicted - MARGIN <= self.true <= self.most + MARGIN


def trial(
    step: Step, device: HostDevice | CudaDevice, seed: int, factor: float, rounds: int
) -> Trial:
    """Predict and measure one change of a step."""
    base, changed = Scale(seed), Scale(seed, "changed", factor)
    for scale in (base, changed):
        timed(step, device, scale)  # the first launch of a kernel compiles it
    with epprof_nb.profile() as prof:
        for _ in range(PROFILED):
            timed(step, device, base)
    found = prof.what_if({"changed": factor}).iloc[0]
    times: dict[Scale, list[float]] = {base: [], changed: []}
    for at in range(rounds):
        for scale in (base, changed) if at % 2 else (changed, base):
            times[scale].append(timed(step, device, scale))
    true = 1 - statistics.median(times[changed]) / statistics.median(times[base])
    savings = (found["saving_ns"], found["saving_high_ns"])
    predicted, most = (ns / prof.info["wall_ns"] for ns in savings)
    return Trial(true, predicted, most)


def main() -> None:
    """Print one row per step, and fail if the predictions are too far from the truth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", default="", help="only steps whose name contains this")
    parser.add_argument("--device", choices=["host", "cuda:0"], default="host")
    options = parser.parse_args()
    header("Savings predicted by what_if, in % of the step (medians), and the truth")
    device = HostDevice() if options.device == "host" else CudaDevice()
    print(
        f"{'step':<32}{'factor':>7}{'true':>8}{'predicted':>11}{'most':>8}{'error':>8}{'within':>9}"
    )
    trials = list[Trial]()
    for name, (step, factors) in (STEPS | model_steps()).items():
        if options.steps not in name:
            continue
        for factor in dict.fromkeys(factors):
            seeds = options.seeds * len(factors) // len(set(factors))
            found = [trial(step, device, seed, factor, options.rounds) for seed in range(seeds)]
            trials += found
            true, predicted, most, error = (
                100 * statistics.median(values)
                for values in zip(*((*t, t.error) for t in found), strict=True)
            )
            within = sum(t.is_within for t in found)
            print(
                f"{name:<32}{factor:>7g}{true:>8.1f}{predicted:>11.1f}{most:>8.1f}{error:>8.1f}"
                f"{within:>5} of {len(found)}"
            )
    error = statistics.median(t.error for t in trials)
    within = sum(t.is_within for t in trials)
    print(f"\nmedian error {error:.1%} of the step; {within} of {len(trials)} within the bounds")
    if error > MAX_ERROR:
        raise SystemExit(f"The median error is over {MAX_ERROR:.0%} of the step.")


if __name__ == "__main__":
    main()
