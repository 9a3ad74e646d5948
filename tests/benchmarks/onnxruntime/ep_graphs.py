"""Cost of graphs on the provider of Python kernels.

A chain of one-element-wise operators on a tiny tensor. On the host device a replay calls the same
Python functions as an eager run, on the worker of the stream, and saves only ONNX Runtime's work
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
from tests.benchmarks.onnxruntime.python_ep import CPU, chain, plain_options, seconds
from tests.benchmarks.shared.harness import header, paired, ratios, show
from tests.benchmarks.shared.kernel_records import kernel_records

CUDA = "CUDAExecutionProvider"


def session(device: str, nodes: int, length: int = 4, **options) -> ort.InferenceSession:
    """A session of a chain without optimisations, which would shorten it."""
    return ort.InferenceSession(
        chain(nodes, length=length),
        plain_options(),
        providers=[ep.provider(device, **options), CPU],
    )


def cuda_session(device: str, nodes: int, length: int = 4) -> ort.InferenceSession:
    """The same on ONNX Runtime's CUDA provider, with graphs."""
    options = {"enable_cuda_graph": "1", "device_id": memory_of(device)[1]}
    return ort.InferenceSession(
        chain(nodes, length=length), plain_options(), providers=[(CUDA, options)]
    )


def has_cuda_provider(device: str) -> bool:
    """Whether the device is one of ONNX Runtime's CUDA provider."""
    return device != "host" and CUDA in ort.get_available_providers()


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
    if has_cuda_provider(args.device):
        made["replay, CUDA provider"] = cuda_session(args.device, args.nodes)
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
    """Print a replay in a profile against one outside, and one with CUPTI's kernel records alone.

    CUPTI's own cost is the same for each kernel, so the rows have kernels of different lengths.
    """
    epprof_nb.onnxruntime.install()
    for length in args.lengths:
        runs = max(5, min(args.runs, args.runs * 100_000 // length))
        x = np.ones(length, np.float32)
        made = {
            "kernels in Python": session(args.device, args.nodes, length, enable_cuda_graph=True)
        }
        if has_cuda_provider(args.device):
            made["CUDA provider"] = cuda_session(args.device, args.nodes, length)
        for provider, each in made.items():
            binding = bound(args.device, each, x)
            with (
                epprof_nb.profile()
            ):  # ONNX Runtime's provider reports its nodes at the capture only
                for _ in range(3):
                    each.run_with_iobinding(binding)
            of_replays(args, f"{provider}, {length:,} elements", each, binding, runs)
    epprof_nb.onnxruntime.uninstall()


def of_replays(args, title: str, made, binding, runs: int) -> None:
    """Print the cost of recording the replays of a session."""

    def run():
        return seconds(lambda: made.run_with_iobinding(binding), runs)

    def recorded_kernels():
        with kernel_records():
            return run()

    def recorded():
        with epprof_nb.profile() as prof:
            taken = run()
        recorded.kernels = prof.activities.query("kind == 'kernel'")
        return taken

    recorded()
    on_cuda = args.device != "host"
    variants = {"replay": run, "replay, in a profile": recorded}
    if on_cuda:
        variants = {"replay": run, "CUPTI's kernel records alone": recorded_kernels, **variants}
    results = paired(variants, args.rounds)
    kernels = recorded.kernels
    assert kernels["op_id"].notna().all()
    assert kernels["capture_op_id"].notna().all()
    print(
        f"{title}: {len(kernels) // runs} kernels of {kernels['duration_ns'].mean() / 1e3:.1f} us"
    )
    bases = ("replay", "CUPTI's kernel records alone") if on_cuda else ("replay",)
    show(results, bases, "us a run", 1e6 / runs)


def resident_kb() -> int:
    """Memory of the process, without the free memory that the allocator of the C library keeps."""
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


PARTS = {"replay": replay, "arrays": arrays, "profiled": profiled, "memory": memory}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="host", help="host or cuda:0")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--lengths", type=int, nargs="+", default=[4], help="elements, for profiles"
    )
    parser.add_argument("--replays", type=int, default=10_000)
    parser.add_argument("--captures", type=int, default=1_000)
    args = parser.parse_args()
    header(f"Graphs of kernels in Python, ONNX Runtime {ort.__version__}, device {args.device}")
    if args.device != "host" and hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    for part in args.parts:
        PARTS[part](args)


if __name__ == "__main__":
    main()
