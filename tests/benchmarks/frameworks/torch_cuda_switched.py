"""Cost of recording PyTorch's modules on a GPU, by switching it on and off between steps.

The time of a step varies more from profile to profile than recording modules costs. All steps are
therefore in one profile without frameworks. The functions of PyTorch are replaced for every other
pair of steps and are the original ones for the others, in the order on, off, off, on.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics

os.environ["TEARDOWN_CUPTI"] = "1"

import epprof_nb  # before torch, whose NVTX ranges it receives

# isort: split
import torch

from epprof_nb.core.options import Options
from epprof_nb.recording.torch.framework import TorchFramework
from tests.benchmarks.shared.harness import header
from tests.benchmarks.shared.torch_cuda_models import Training, gpt, resnet


def measure(name: str, training: Training, pairs: int, steps: int) -> None:
    """Print the time of steps with and without recording."""
    framework = TorchFramework()
    times: dict[bool, list[float]] = {True: [], False: []}
    with epprof_nb.profile(frameworks=[]) as prof:
        framework.start(Options(frameworks=("torch",)))
        patches = framework._recording._patches
        training.steps(2)
        gc.collect()
        gc.freeze()
        for number in range(2 * pairs):
            records = number % 4 in {0, 3}
            (patches.resume if records else patches.suspend)()
            times[records].append(training.steps(steps))
        gc.unfreeze()
        patches.resume()
        framework.stop()
    recorded = (prof.ops["op_type"] == "module").sum()
    ratios = [on / off for on, off in zip(times[True], times[False], strict=True)]
    added = [(on - off) * 1e6 for on, off in zip(times[True], times[False], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    # The standard error of a median is 1.25 times that of a mean; quartiles leave out outliers.
    error = 1.25 * (high - low) / 1.35 / len(ratios) ** 0.5
    print(f"{name}: {len(ratios)} pairs of {steps} steps, {recorded:,} calls of modules recorded")
    for records, label in ((False, "not recorded"), (True, "recorded")):
        print(f"  {label:14}{statistics.median(times[records]) * 1e3:8.3f} ms a step, least "
              f"{min(times[records]) * 1e3:.3f}")  # fmt: skip
    print(f"  ratio {middle:.3f} (standard error {error:.3f}, quartiles {low:.3f} and {high:.3f}), "
          f"{statistics.median(added):.0f} us a step\n", flush=True)  # fmt: skip


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=150)
    parser.add_argument("--steps", type=int, default=1)
    options = parser.parse_args()
    header(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}")
    measure("GPT, 12 layers of 768", gpt(12, 4, 256), options.pairs, options.steps)
    measure("ResNet-50", resnet(16), options.pairs, options.steps)


if __name__ == "__main__":
    main()
