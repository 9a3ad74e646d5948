"""Cost of ONNX Runtime's own recording per node, by properties of the node and its session.

::

    python -m tests.benchmarks.onnxruntime.ort_node_cost       # needs onnxruntime and onnx; no GPU

Each row varies one thing: the threads of the session's intra-op pool, the number of inputs of a
node, the length of its name, the size of its tensors. The shortest of several rounds counts,
because other load only adds to it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import onnxruntime
from onnx import helper

from epprof_nb.onnxruntime import attach
from epprof_nb.recording.onnxruntime import sessions
from tests.benchmarks.shared.harness import header
from tests.ort import models

WIDTH = 4


def model(nodes: int, inputs: int, name: str) -> bytes:
    """A chain of nodes with this number of inputs."""
    made, last = [], "x"
    for i in range(nodes):
        kind = ("Sum", "Max")[i % 2]
        made.append(
            helper.make_node(kind, [last, *["x"] * (inputs - 1)], [f"t{i}"], name=f"{name}{i}")
        )
        last = f"t{i}"
    ends = [models.value("x", ("N", WIDTH))], [models.value(last, ("N", WIDTH))]
    return models.serialized(helper.make_graph(made, "cost", *ends))


def microseconds(args, *, threads=1, inputs=2, name="n", rows=1) -> float:
    """Time per node that recording adds."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(model(args.nodes, inputs, name), options)
    profiled = onnxruntime.RunOptions()
    sessions.enable(profiled, sessions.NO_FILE)
    x = np.ones((rows, WIDTH), np.float32)
    least = []
    for run_options in (None, profiled):
        times = []
        for _ in range(args.rounds):
            begin = time.perf_counter()
            for _ in range(args.runs):
                session.run(None, {"x": x}, run_options)
            times.append(time.perf_counter() - begin)
        least.append(min(times))
    return (least[1] - least[0]) / args.runs / args.nodes * 1e6


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()
    attach.register()
    header(f"ONNX Runtime {onnxruntime.__version__}, recording of {args.nodes} nodes a run")
    for label, variants in {
        "intra-op threads": [{"threads": n} for n in (1, 2, 16, 64)],
        "inputs": [{"inputs": n} for n in (2, 4, 8, 16)],
        "length of the name": [{"name": "n" * n} for n in (1, 200)],
        "rows": [{"rows": n} for n in (1, 1000)],
    }.items():
        cells = []
        for variant in variants:
            (value,) = variant.values()
            shown = len(value) if isinstance(value, str) else value
            cells.append(f"{shown}: {microseconds(args, **variant):.1f}")
        print(f"{label:20}  {'   '.join(cells)}  us per node", flush=True)


if __name__ == "__main__":
    main()
