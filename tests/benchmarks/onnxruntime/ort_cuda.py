"""Overhead of a profile for a model on ONNX Runtime's CUDA provider, eager and as a graph.

Needs onnx and a GPU with onnxruntime-gpu; for models exported by torch (``--exported``) also torch,
transformers and torchvision. ONNX Runtime's own profiling slows an eager run most, so it is also
measured alone.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import onnxruntime as ort

import epprof_nb
from epprof_nb.recording.onnxruntime import sessions
from tests.benchmarks.shared.harness import header, paired, show
from tests.gpu import exported
from tests.ort import decoder, models
from tests.ort.cuda import bound


def unprofiled(session, binding, count, options=None) -> float:
    """Seconds of `count` runs."""
    begin = time.perf_counter()
    for _ in range(count):
        session.run_with_iobinding(binding, options)
    binding.synchronize_outputs()
    return time.perf_counter() - begin


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=36)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--shapes", nargs="+", default=["64x4", "256x512", "2048x1024", "4096x2048"]
    )
    parser.add_argument("--exported", nargs="*", default=[], help="bert, resnet50")
    parser.add_argument("--decoder", type=int, nargs=3, metavar=("LAYERS", "HEADS", "WIDTH"))
    parser.add_argument("--steps", type=int, default=128, help="of the decoder")
    args = parser.parse_args()
    if hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    if args.exported:
        header(f"ONNX Runtime {ort.__version__}, CUDA provider, models exported by torch")
        for name in args.exported:
            learned(name, args)
        return
    if args.decoder:
        header(f"ONNX Runtime {ort.__version__}, CUDA provider, {args.steps} steps of a decoder")
        growing(args)
        return
    header(f"ONNX Runtime {ort.__version__}, CUDA provider, {args.nodes} nodes a run")
    for shape in args.shapes:
        rows, width = map(int, shape.split("x"))
        x = np.random.default_rng(0).standard_normal((rows, width)).astype(np.float32)
        model = models.chain([f"n{i}" for i in range(args.nodes)], width)
        if shape == args.shapes[0]:
            eager(model, x, args)
        replays(model, x, args)


def session_pair(model, providers) -> tuple[ort.InferenceSession, ort.InferenceSession]:
    """The same session without and with the observer."""
    epprof_nb.onnxruntime.uninstall()
    plain = ort.InferenceSession(model, providers=providers)
    epprof_nb.onnxruntime.install()
    return plain, ort.InferenceSession(model, providers=providers)


def learned(name, args) -> None:
    """Print the costs of runs whose nodes are recorded, or identified by their launches."""
    model, (feed,) = exported.get(name)
    plain, observed = session_pair(model, ["CUDAExecutionProvider"])

    def ran(session) -> float:
        begin = time.perf_counter()
        for _ in range(args.runs):
            session.run(None, feed)
        return time.perf_counter() - begin

    def profiled(session, mode, state=None) -> float:
        with epprof_nb.profile(ort_nodes=mode) as prof:
            seconds = ran(session)
        if state:
            assert set(prof.by_run()["node_events"]) == {state}
            kernels = prof.activities[prof.activities["kind"] == "kernel"]
            assert kernels["op_id"].notna().all()
        return seconds

    for mode in ("auto", "every"):
        profiled(observed, mode)
    for session in (plain, observed):
        ran(session)
    profiled(plain, "off")
    print(f"{name}: {len(prof_of_one(observed, feed).by_node())} nodes")
    variants = {
        "unprofiled": lambda: ran(plain),
        "observed, idle": lambda: ran(observed),
        "CUPTI alone": lambda: profiled(plain, "off"),
        "runs only": lambda: profiled(observed, "off", "not recorded"),
        "learned": lambda: profiled(observed, "auto", "learned"),
        "node by node": lambda: profiled(observed, "every", "recorded"),
    }
    show(paired(variants, args.rounds), ("unprofiled", "CUPTI alone"), "us a run", 1e6 / args.runs)


def growing(args) -> None:
    """Print the costs of a generation in which the inputs of each run are longer."""
    model = decoder.decoder(*args.decoder)
    plain, observed = session_pair(model, ["CUDAExecutionProvider"])

    def ran(session) -> float:
        begin = time.perf_counter()
        decoder.generate(session, args.steps)
        return time.perf_counter() - begin

    def profiled(session, mode) -> float:
        with epprof_nb.profile(ort_nodes=mode) as prof:
            seconds = ran(session)
        counted.setdefault(mode, []).append(prof.by_run()["node_events"].value_counts().to_dict())
        return seconds

    def first() -> float:
        fresh = ort.InferenceSession(model, providers=["CUDAExecutionProvider"])
        ran(fresh)
        return profiled(fresh, "auto")

    counted: dict[str, list[dict[str, int]]] = {}
    for session in (plain, observed):
        ran(session)
    profiled(observed, "auto")
    variants = {
        "unprofiled": lambda: ran(plain),
        "CUPTI alone": lambda: profiled(plain, "off"),
        "learned, first generation": first,
        "learned, further ones": lambda: profiled(observed, "auto"),
        "node by node": lambda: profiled(observed, "every"),
    }
    show(
        paired(variants, args.rounds), ("unprofiled", "CUPTI alone"), "us a step", 1e6 / args.steps
    )
    print("steps of the first generation:", counted["auto"][0])
    print("steps of the last one:", counted["auto"][-1])


def prof_of_one(session, feed):
    """A profile of one run, node by node."""
    with epprof_nb.profile(ort_nodes="every") as prof:
        session.run(None, feed)
    return prof


def in_profile(session, binding, args, check=True, mode="every") -> float:
    """Like `unprofiled`, but recorded; the profile holds every kernel."""
    with epprof_nb.profile(ort_nodes=mode) as prof:
        seconds = unprofiled(session, binding, args.runs)
    rows = prof.activities
    rows = rows[rows["kind"] == "kernel"]
    assert len(rows) >= args.runs * args.nodes, (len(rows), prof.info["recorded"])
    if check:
        assert rows["op_id"].notna().all()
        assert rows.loc[rows["graph_id"].notna(), "capture_op_id"].notna().all()
    return seconds


def eager(model, x, args) -> None:
    """Print the costs of runs without a graph."""
    plain, observed = session_pair(model, ["CUDAExecutionProvider"])
    output = f"t{args.nodes - 1}"
    (of_plain, _p), (of_observed, _o) = (bound(s, x, output) for s in (plain, observed))
    profiled = ort.RunOptions()
    sessions.enable(profiled, sessions.NO_FILE)
    for session, binding in ((plain, of_plain), (observed, of_observed)):
        unprofiled(session, binding, args.runs)
    in_profile(observed, of_observed, args)
    variants = {
        "eager, unprofiled": lambda: unprofiled(plain, of_plain, args.runs),
        "observed, idle": lambda: unprofiled(observed, of_observed, args.runs),
        "ORT's run profiling alone": lambda: unprofiled(plain, of_plain, args.runs, profiled),
        "in a profile, node by node": lambda: in_profile(observed, of_observed, args),
        "in a profile, learned": lambda: in_profile(observed, of_observed, args, mode="auto"),
    }
    bases = ("eager, unprofiled", "ORT's run profiling alone")
    show(paired(variants, args.rounds), bases, "us a run", 1e6 / args.runs)


def replays(model, x, args) -> None:
    """Print the costs of replays of a graph of these kernels."""
    providers = [("CUDAExecutionProvider", {"enable_cuda_graph": "1"})]
    plain, observed = session_pair(model, providers)
    recorded, outside = session_pair(model, providers)
    output = f"t{args.nodes - 1}"
    made = {id(s): bound(s, x, output) for s in (plain, observed, recorded, outside)}
    binding = {key: pair[0] for key, pair in made.items()}
    unprofiled(plain, binding[id(plain)], 3)  # captured outside of a profile ...
    unprofiled(outside, binding[id(outside)], 3)
    for session in (recorded, observed):  # ... and inside of one
        with epprof_nb.profile():
            unprofiled(session, binding[id(session)], 3)
    with epprof_nb.profile() as prof:
        unprofiled(observed, binding[id(observed)], 3)
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    print(f"\n{x.shape[0]} x {x.shape[1]}: {kernels['duration_ns'].mean() / 1e3:.1f} us per kernel")
    in_profile(observed, binding[id(observed)], args)

    def idle(session):
        return lambda: unprofiled(session, binding[id(session)], args.runs)

    variants = {
        "replay, unprofiled": idle(plain),
        "captured in a profile, idle": idle(recorded),
        "observed, idle": idle(outside),
        "observed, captured in a profile, idle": idle(observed),
        "not observed, in a profile": lambda: in_profile(
            plain, binding[id(plain)], args, check=False
        ),
        "in a profile": lambda: in_profile(observed, binding[id(observed)], args),
    }
    show(paired(variants, args.rounds), ("replay, unprofiled",), "us a run", 1e6 / args.runs)


if __name__ == "__main__":
    main()
