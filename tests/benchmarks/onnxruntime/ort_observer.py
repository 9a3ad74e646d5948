"""Cost per node of observing ONNX Runtime: attached and idle, and in a profile of each mode.

::

    python -m tests.benchmarks.onnxruntime.ort_observer        # needs onnxruntime and onnx; no GPU
    python -m tests.benchmarks.onnxruntime.ort_observer --nodes 36 --rows 64 --width 256

ONNX Runtime's own profiling of a run, without the observer's session, is also measured; the rest is
the cost of the observer. Times are processor times, because other load would add to elapsed times.
In the mode "auto" few runs are recorded: the sum of all rounds shows their average cost.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import onnxruntime

import epprof_nb
from epprof_nb.recording.onnxruntime import sessions
from tests.benchmarks.shared.harness import header, paired, show
from tests.ort import models


def timed(session, options, runs, x):
    begin = time.process_time()
    for _ in range(runs):
        session.run(None, {"x": x}, options)
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=201)
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--width", type=int, default=4)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    header(f"ONNX Runtime {onnxruntime.__version__}, {arguments.nodes} nodes a run")
    x = np.ones((arguments.rows, arguments.width), np.float32)
    model = models.chain([f"n{i}" for i in range(arguments.nodes)], arguments.width)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    plain = onnxruntime.InferenceSession(model, settings)
    epprof_nb.onnxruntime.install()
    observed = onnxruntime.InferenceSession(model, settings)
    profiled = onnxruntime.RunOptions()
    sessions.enable(profiled, sessions.NO_FILE)
    idle = onnxruntime.RunOptions()

    def recorded(mode: str) -> float:
        with epprof_nb.profile(ort_nodes=mode):
            return timed(observed, idle, arguments.runs, x)

    variants = {
        "plain": lambda: timed(plain, idle, arguments.runs, x),
        "observed, idle": lambda: timed(observed, idle, arguments.runs, x),
        "run profile": lambda: timed(plain, profiled, arguments.runs, x),
        "run profile, observed": lambda: timed(observed, profiled, arguments.runs, x),
        "in a profile, off": lambda: recorded("off"),
        "in a profile, auto": lambda: recorded("auto"),
        "in a profile, every": lambda: recorded("every"),
    }
    for variant in variants.values():
        variant()
    results = paired(variants, arguments.rounds)
    show(results, ("plain", "run profile"), "us/node", 1e6 / arguments.runs / arguments.nodes)
    total = {name: sum(seconds) for name, seconds in results.items()}
    for name in ("observed, idle", "in a profile, off", "in a profile, auto"):
        print(f"{name}: {total[name] / total['plain']:.3f} x plain over all rounds")


if __name__ == "__main__":
    main()
