"""Cost of kernels in Python on a CUDA device. Needs onnx, CuPy and a GPU.

A node over the bare CuPy launch, and a model of ONNX Runtime's CUDA provider of which every third
node is taken over by an equally fast kernel. The second needs onnxruntime-gpu. What a row needs is
printed where it is missing.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
import onnxruntime as ort

import epprof_nb
from epprof_nb import ep
from tests.benchmarks.harness import header, paired, ratios
from tests.benchmarks.python_ep import CPU, chain, plain_options, seconds

CUDA = "CUDAExecutionProvider"


def bound(session, x):
    """A binding of input and output in device memory, and what it binds."""
    values = [ort.OrtValue.ortvalue_from_numpy(x, "cuda", 0) for _ in range(2)]
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", values[0])
    binding.bind_ortvalue_output(session.get_outputs()[0].name, values[1])
    return binding, values


def runs(session, x, count):
    """A function that measures `count` runs, after some that are not measured."""
    binding, values = bound(session, x)

    def run(_keep=values):
        session.run_with_iobinding(binding)

    seconds(run, 20)
    return lambda: seconds(run, count)


def session(nodes, *providers, length=4):
    """A session of a chain of Neg."""
    model = chain(nodes, length=length)
    return ort.InferenceSession(model, plain_options(), providers=[*providers, CPU])


def define(cp):
    """Define a kernel as fast as the CUDA provider's; return it."""
    negative = cp.ElementwiseKernel("float32 x", "float32 y", "y = -x", "own_neg")

    @ep.kernel("Neg", types="float32")
    def kernel(ctx, x):
        negative(x, ctx.out(x.shape, x.dtype))

    return negative


def node_cost(cp, negative, args) -> None:
    """Print the cost of a node over the bare launch."""
    x = np.ones(4, np.float32)
    entry = ep.provider("cuda:0")
    a, b = cp.ones(4, cp.float32), cp.empty(4, cp.float32)
    stream = cp.cuda.Stream(non_blocking=True)

    def bare():
        with stream:
            for _ in range(args.nodes):
                negative(a, b)
        stream.synchronize()

    results = paired(
        {
            "bare": lambda: seconds(bare, args.runs),
            "many": runs(session(args.nodes, entry), x, args.runs),
            "one": runs(session(1, entry), x, args.runs),
        },
        args.rounds,
    )
    bare_us = statistics.median(results["bare"]) * 1e6 / args.runs / args.nodes
    cost = statistics.median(
        (many - one) * 1e6 / args.runs / (args.nodes - 1)
        for many, one in zip(results["many"], results["one"], strict=True)
    )
    print(f"{'bare CuPy launch':32} {bare_us:8.2f} us")
    print(
        f"{'kernel in Python, a node':32} {cost:8.2f} us   over the launch {cost - bare_us:.2f} us"
    )


def copies_of(made, x) -> int:
    """Copies in a profile of one run."""
    binding, _values = bound(made, x)
    made.run_with_iobinding(binding)
    with epprof_nb.profile() as prof:
        made.run_with_iobinding(binding)
    return int((prof.activities["kind"] == "memcpy").sum())


def takeover(args) -> None:
    """Print the cost of taking over one node of three, and the copies that it adds."""
    x = np.ones(args.length, np.float32)
    taken = [f"n{i}" for i in range(1, args.nodes, 3)]
    alone = session(args.nodes, CUDA, length=len(x))
    shared = session(args.nodes, ep.provider("cuda:0", nodes=taken), CUDA, length=len(x))
    results = paired(
        {"CUDA provider": runs(alone, x, args.runs), "taken over": runs(shared, x, args.runs)},
        args.rounds,
    )
    low, middle, high = ratios(results, "CUDA provider")["taken over"]
    added = copies_of(shared, x) - copies_of(alone, x)
    print(
        f"{len(taken)} of {args.nodes} nodes taken over: {middle:.2f}x ({low:.2f}-{high:.2f}), "
        f"{added} copies added"
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=99)
    parser.add_argument("--length", type=int, default=1 << 20, help="of tensors, in the takeover")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    header(f"Kernels in Python, ONNX Runtime {ort.__version__}, CUDA device")
    try:
        import cupy as cp

        name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    except Exception as error:
        print(f"skipped: needs CuPy and a GPU ({error})")
        return
    print(f"GPU {name}, CuPy {cp.__version__}")
    if hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    negative = define(cp)
    node_cost(cp, negative, args)
    if CUDA in ort.get_available_providers():
        takeover(args)
    else:
        print("takeover skipped: needs onnxruntime-gpu")


if __name__ == "__main__":
    main()
