"""What a profile costs a model on ONNX Runtime's CUDA provider, eager and replayed from a graph.

Needs onnx and a GPU with onnxruntime-gpu. ONNX Runtime's own profiling of each run is what
stretches an eager run most: it is measured beside, alone.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import onnxruntime as ort

import epprof_nb
from epprof_nb import ort_runs
from tests.benchmarks.harness import header, paired, show
from tests.ort import models


def bound(session, x, output):
    """Inputs and outputs that stay on the device, as a CUDA graph needs them."""
    binding = session.io_binding()
    given = ort.OrtValue.ortvalue_from_numpy(x, "cuda", 0)
    taken = ort.OrtValue.ortvalue_from_shape_and_type(x.shape, np.float32, "cuda", 0)
    binding.bind_ortvalue_input("x", given)
    binding.bind_ortvalue_output(output, taken)
    return binding, (given, taken)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=36)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    if hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    header(f"ONNX Runtime {ort.__version__}, CUDA provider, {args.nodes} nodes a run")
    x = np.random.default_rng(0).standard_normal((64, 4)).astype(np.float32)
    model = models.chain([f"n{i}" for i in range(args.nodes)])
    output = f"t{args.nodes - 1}"
    cuda = ["CUDAExecutionProvider"]
    graphs = [("CUDAExecutionProvider", {"enable_cuda_graph": "1"})]
    epprof_nb.onnxruntime.uninstall()
    plain, plain_graph = (ort.InferenceSession(model, providers=p) for p in (cuda, graphs))
    epprof_nb.onnxruntime.install()
    observed, observed_graph = (ort.InferenceSession(model, providers=p) for p in (cuda, graphs))
    bindings = {id(s): bound(s, x, output) for s in (plain, plain_graph, observed, observed_graph)}
    profiled = ort.RunOptions()
    ort_runs.enable(profiled, ort_runs.NO_FILE)

    def runs(session, options=None) -> float:
        binding = bindings[id(session)][0]
        begin = time.perf_counter()
        for _ in range(args.runs):
            session.run_with_iobinding(binding, options)
        binding.synchronize_outputs()
        return time.perf_counter() - begin

    def recorded(session) -> float:
        with epprof_nb.profile():
            return runs(session)

    def in_profile(session) -> float:
        with epprof_nb.profile() as prof:
            seconds = runs(session)
        rows = prof.activities
        rows = rows[rows["kind"] == "kernel"]
        assert len(rows) >= args.runs * args.nodes, (len(rows), prof.info["recorded"])
        assert rows["op_id"].notna().all()
        if session is observed_graph:
            assert rows.loc[rows["graph_id"].notna(), "capture_op_id"].notna().all()
        return seconds

    for session in (plain, observed, plain_graph):
        runs(session)
    with epprof_nb.profile():  # the capture, seen by the observer
        runs(observed_graph)
    eager = {
        "eager, unprofiled": lambda: runs(plain),
        "observed, idle": lambda: runs(observed),
        "ORT's run profiling alone": lambda: runs(plain, profiled),
        "in a profile": lambda: in_profile(observed),
    }
    in_profile(observed)
    bases = ("eager, unprofiled", "ORT's run profiling alone")
    show(paired(eager, args.rounds), bases, "us a run", 1e6 / args.runs)
    replay = {
        "replay, unprofiled": lambda: runs(plain_graph),
        "observed, idle": lambda: runs(observed_graph),
        "not observed, in a profile": lambda: recorded(plain_graph),
        "in a profile": lambda: in_profile(observed_graph),
    }
    in_profile(observed_graph)
    show(paired(replay, args.rounds), ("replay, unprofiled",), "us a run", 1e6 / args.runs)


if __name__ == "__main__":
    main()
