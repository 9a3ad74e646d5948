"""Cost of a kernel in Python, on the host device.

A chain of one-element-wise operators on a tiny tensor, so that the array operation itself costs
next to nothing. Needs onnx; the row of onnxruntime-extensions appears if that package is installed.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

import epprof_nb
from epprof_nb import ep
from tests.benchmarks.shared.harness import header, paired, ratios

CPU = "CPUExecutionProvider"


def chain(nodes: int, op_type: str = "Neg", domain: str = "", length: int = 4) -> bytes:
    """A chain of equal operators, which no optimisation removes."""
    values = ["x", *(f"t{i}" for i in range(nodes))]
    made = [
        helper.make_node(op_type, [values[i]], [values[i + 1]], name=f"n{i}", domain=domain)
        for i in range(nodes)
    ]
    graph = helper.make_graph(
        made,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [length])],
        [helper.make_tensor_value_info(values[-1], TensorProto.FLOAT, None)],
    )
    opsets = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    model = helper.make_model(graph, opset_imports=opsets)
    model.ir_version = 9
    return model.SerializeToString()


def plain_options() -> ort.SessionOptions:
    """Options without optimisations: they would shorten the chain."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return options


def seconds(call, count: int) -> float:
    """Seconds of `count` calls."""
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - begin


def processor_seconds(call, count: int) -> float:
    """Seconds of processor time of `count` calls on this thread, independent of other load."""
    begin = time.thread_time()
    for _ in range(count):
        call()
    return time.thread_time() - begin


def extensions_sessions(sizes: list[int]) -> list[ort.InferenceSession] | None:
    """Sessions with the same operator in onnxruntime-extensions; None if it is missing."""
    try:
        import onnxruntime_extensions as extensions
    except ImportError:
        return None
    kind = extensions.PyCustomOpDef.dt_float

    @extensions.onnx_op(op_type="PyNeg", inputs=[kind], outputs=[kind])
    def negative(x):
        return np.negative(x)

    def session(nodes):
        options = plain_options()
        options.register_custom_ops_library(extensions.get_library_path())
        model = chain(nodes, "PyNeg", "ai.onnx.contrib")
        return ort.InferenceSession(model, options, providers=[CPU])

    return [session(nodes) for nodes in sizes]


def node_cost(args) -> None:
    """Print the cost of a node over the bare array call: processor time, all on this thread."""
    x = np.ones(4, np.float32)

    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        np.negative(x, out=ctx.out(x.shape, x.dtype))

    def session(nodes):
        return ort.InferenceSession(
            chain(nodes), plain_options(), providers=[ep.provider("host"), CPU]
        )

    ours, one = session(args.nodes), session(1)
    cpu, cpu_one = (
        ort.InferenceSession(chain(n), plain_options(), providers=[CPU]) for n in (args.nodes, 1)
    )
    y = np.empty_like(x)
    feeds = {"x": x}

    def bare():
        for _ in range(args.nodes):
            np.negative(x, out=y)

    variants = {"bare NumPy calls": lambda: processor_seconds(bare, args.runs)}
    pairs = {"kernel in Python": (ours, one), "CPU provider": (cpu, cpu_one)}
    of_extensions = extensions_sessions([args.nodes, 1])
    if of_extensions is not None:
        pairs["onnxruntime-extensions"] = tuple(of_extensions)
    for name, (many, single) in pairs.items():
        variants[name] = lambda s=many: processor_seconds(lambda: s.run(None, feeds), args.runs)
        variants[f"{name}, 1 node"] = lambda s=single: processor_seconds(
            lambda: s.run(None, feeds), args.runs
        )
    results = paired(variants, args.rounds)
    per_run = 1e6 / args.runs
    bare_us = statistics.median(results["bare NumPy calls"]) * per_run / args.nodes
    print(f"{'bare NumPy call':32} {bare_us:8.2f} us of processor time")
    for name in pairs:
        # The difference to a run of one node leaves out what a run itself costs.
        costs = [
            (many - single) * per_run / (args.nodes - 1)
            for many, single in zip(results[name], results[f"{name}, 1 node"], strict=True)
        ]
        cost = statistics.median(costs)
        print(
            f"{name + ', a node':32} {cost:8.2f} us   over the bare call {cost - bare_us:8.2f} us"
        )


def profiled_cost(args) -> None:
    """Print the cost of a node in a profile."""
    epprof_nb.onnxruntime.install()
    x = np.ones(4, np.float32)
    session = ort.InferenceSession(
        chain(args.nodes), plain_options(), providers=[ep.provider("host"), CPU]
    )
    feeds = {"x": x}
    session.run(None, feeds)
    costs = []
    for _ in range(args.rounds):
        with epprof_nb.profile():
            costs.append(seconds(lambda: session.run(None, feeds), args.runs // 10))
    epprof_nb.onnxruntime.uninstall()
    cost = statistics.median(costs) * 1e6 / (args.runs // 10) / args.nodes
    print(f"{'kernel in Python, in a profile':32} {cost:8.2f} us")


def creation(args) -> None:
    """Print the cost of creating a session of 200 nodes, and of an unused registered provider."""
    model = chain(200)
    x = {"x": np.ones(4, np.float32)}
    entry = ep.provider("host")

    def create(providers):
        return lambda: processor_seconds(
            lambda: ort.InferenceSession(model, plain_options(), providers=providers), 10
        )

    results = paired({"CPU provider": create([CPU]), "kernels": create([entry, CPU])}, args.rounds)
    low, middle, high = ratios(results, "CPU provider")["kernels"]
    print(
        f"creating a session of 200 nodes: {middle:.2f}x the CPU provider "
        f"({low:.2f}-{high:.2f}), processor time"
    )
    session = ort.InferenceSession(model, plain_options(), providers=[entry, CPU])

    def run(count):
        for _ in range(count):
            session.run(None, x)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = run(1000)
    after = run(10000)
    later = run(args.more_runs)
    print(
        f"10,000 runs: peak memory grew by {after - before} kB after the first 1,000, and by "
        f"{later - after} kB in {args.more_runs:,} more"
    )


UNUSED = """
import sys, time
import numpy as np, onnxruntime as ort
from epprof_nb import ep
from tests.benchmarks.onnxruntime.python_ep import CPU, chain, plain_options, seconds
if sys.argv[1] == "registered":
    ep.provider("host")
session = ort.InferenceSession(chain(100), plain_options(), providers=[CPU])
feeds = {"x": np.ones(4, np.float32)}
seconds(lambda: session.run(None, feeds), 1000)
print(min(seconds(lambda: session.run(None, feeds), 1000) for _ in range(5)))
"""


def unused(args) -> None:
    """Print the cost of a registered provider for a session of the CPU provider.

    Registration is permanent, so each measurement has a separate process.
    """

    def measured(state):
        command = [sys.executable, "-c", UNUSED, state]
        return lambda: float(subprocess.run(command, capture_output=True, check=True).stdout)

    results = paired({s: measured(s) for s in ("as it is", "registered")}, args.rounds)
    low, middle, high = ratios(results, "as it is")["registered"]
    print(f"registered, not used by the session: {middle:.2f}x ({low:.2f}-{high:.2f})")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--more-runs", type=int, default=50_000, help="to tell a step from a leak")
    args = parser.parse_args()
    header(f"Kernels in Python, ONNX Runtime {ort.__version__}, host device")
    node_cost(args)
    profiled_cost(args)
    creation(args)
    unused(args)


if __name__ == "__main__":
    main()
