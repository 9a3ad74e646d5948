"""Cost of graphs on the provider of Python kernels.

A chain of one-element-wise operators on a tiny tensor. On the host device a replay calls the same
Python functions as an eager run, on the worker of the stream; what it saves is ONNX Runtime's work
between the nodes. On a CUDA device (``--device cuda:0``, needs CuPy) it is one launch, and is also
compared with a replay of ONNX Runtime's CUDA provider, if there is one. Needs onnx and ONNX Runtime
1.26 or newer.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import gc
import mmap
import statistics
from pathlib import Path

import numpy as np
import onnxruntime as ort

import epprof_nb
from epprof_nb import ep
from tests.benchmarks.harness import header, paired, ratios, show
from tests.benchmarks.python_ep import CPU, chain, plain_options, seconds

CUDA = "CUDAExecutionProvider"


def session(device: str, nodes: int, **options) -> ort.InferenceSession:
    """A session of a chain without optimisations, which would shorten it."""
    return ort.InferenceSession(
        chain(nodes), plain_options(), providers=[ep.provider(device, **options), CPU]
    )


def memory_of(device: str) -> tuple[str, int]:
    """Name and number of a device's memory."""
    return ("gpu", 0) if device == "host" else ("cuda", int(device.partition(":")[2] or 0))


def bound(device: str, made: ort.InferenceSession, x: np.ndarray):
    """A binding with fixed buffers on the device."""
    binding = made.io_binding()
    values = [ort.OrtValue.ortvalue_from_numpy(x, *memory_of(device)) for _ in range(2)]
    binding.bind_ortvalue_input("x", values[0])
    binding.bind_ortvalue_output(made.get_outputs()[0].name, values[1])
    return binding


def replay(args) -> None:
    """Print a replay against an eager run of the same nodes, each with fixed buffers."""
    x = np.ones(4, np.float32)
    made = {
        "eager": session(args.device, args.nodes),
        "replay": session(args.device, args.nodes, enable_cuda_graph=True),
    }
    if args.device != "host" and CUDA in ort.get_available_providers():
        made["replay, CUDA provider"] = ort.InferenceSession(
            chain(args.nodes),
            plain_options(),
            providers=[(CUDA, {"enable_cuda_graph": "1", "device_id": memory_of(args.device)[1]})],
        )
    bindings = {name: bound(args.device, each, x) for name, each in made.items()}

    def run(name):
        return seconds(lambda: made[name].run_with_iobinding(bindings[name]), args.runs)

    for name, each in made.items():
        each.run_with_iobinding(bindings[name])
    results = paired({name: functools.partial(run, name) for name in made}, args.rounds)
    print(f"{args.nodes} nodes:")
    show(results, ("eager",), "us a run", 1e6 / args.runs)
    if len(made) == 3:
        low, middle, high = ratios(results, "replay, CUDA provider")["replay"]
        print(f"replay over the CUDA provider's: {middle:.2f}x ({low:.2f}-{high:.2f})\n")


def arrays(args) -> None:
    """Print what `run` costs over `run_with_iobinding` and the copies of the arrays."""
    x = np.ones(4, np.float32)
    graph = session(args.device, 4, enable_cuda_graph=True)
    binding = bound(args.device, graph, x)
    graph.run_with_iobinding(binding)
    graph.run(None, {"x": x})
    value = ort.OrtValue.ortvalue_from_numpy(x, *memory_of(args.device))

    def copies():
        value.update_inplace(x)
        value.numpy()

    results = paired(
        {
            "run_with_iobinding": lambda: seconds(
                lambda: graph.run_with_iobinding(binding), args.runs
            ),
            "copies in and out": lambda: seconds(copies, args.runs),
            "run": lambda: seconds(lambda: graph.run(None, {"x": x}), args.runs),
        },
        args.rounds,
    )
    costs = [
        (run - bind - copy) * 1e6 / args.runs
        for run, bind, copy in zip(
            results["run"], results["run_with_iobinding"], results["copies in and out"], strict=True
        )
    ]
    print("replays of 4 nodes:")
    show(results, ("run_with_iobinding",), "us a run", 1e6 / args.runs)
    print(
        f"run() over run_with_iobinding() and the copies: {statistics.median(costs):.1f} us "
        f"({min(costs):.1f}-{max(costs):.1f})\n"
    )


def profiled(args) -> None:
    """Print a replay in a profile against one outside of a profile."""
    epprof_nb.onnxruntime.install()
    x = np.ones(4, np.float32)
    graph = session(args.device, args.nodes, enable_cuda_graph=True)
    binding = bound(args.device, graph, x)
    graph.run_with_iobinding(binding)

    def run():
        return seconds(lambda: graph.run_with_iobinding(binding), args.runs)

    def recorded():
        with epprof_nb.profile():
            return run()

    results = paired({"replay": run, "replay, in a profile": recorded}, args.rounds)
    epprof_nb.onnxruntime.uninstall()
    low, middle, high = ratios(results, "replay")["replay, in a profile"]
    print(f"a replay of {args.nodes} nodes in a profile: {middle:.2f}x ({low:.2f}-{high:.2f})\n")


def resident_kb() -> int:
    """Memory of the process, without what the allocator of the C library keeps free."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * mmap.PAGESIZE // 1024


def used_kb(device: str) -> np.ndarray:
    """Memory of the process and of a CUDA device."""
    if device == "host":
        return np.array([resident_kb(), 0])
    import cupy

    with cupy.cuda.Device(memory_of(device)[1]):
        free, total = cupy.cuda.runtime.memGetInfo()
    return np.array([resident_kb(), (total - free) // 1024])


def memory(args) -> None:
    """Print how memory grows over replays, and over captures and releases."""
    x = np.ones(4, np.float32)
    graph = session(args.device, 8, enable_cuda_graph=True)

    def growth(times, action):
        for _ in range(max(times // 10, 1)):
            action()
        before = used_kb(args.device)
        for _ in range(times):
            action()
        return used_kb(args.device) - before

    def capture():
        graph.run(None, {"x": x})
        graph.release_captured_graph(0)

    for times, name, action in (
        (args.replays, "replays", lambda: graph.run(None, {"x": x})),
        (args.captures, "captures and releases", capture),
    ):
        host, device = growth(times, action)
        print(
            f"{times:,} {name}: memory grew by {host} kB after the first tenth, and that of the "
            f"device by {device} kB"
        )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="host", help="host or cuda:0")
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--replays", type=int, default=10_000)
    parser.add_argument("--captures", type=int, default=1_000)
    args = parser.parse_args()
    header(f"Graphs of kernels in Python, ONNX Runtime {ort.__version__}, device {args.device}")
    if args.device != "host" and hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    replay(args)
    arrays(args)
    profiled(args)
    memory(args)


if __name__ == "__main__":
    main()
