"""Attribution of the work of CUDA graph replays, by the library that captured the graphs.

Each kernel has its own name if the source allows it, so that a wrong node cannot pass.
Needs an NVIDIA GPU and CuPy; each source that cannot be imported is named and left out.
"""

from __future__ import annotations

import argparse
import os
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import cupy as cp
import numpy as np
import pandas as pd

import epprof_nb
from epprof_nb import ep
from tests.benchmarks.shared.harness import header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NODES = 10
REPLAYS = 20
CODE = """
extern "C" __global__ void {name}(const float* x, float* y, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
}}
"""
AROUND = 3  # kernels around the work, in graphs with child graphs and conditional nodes
KERNELS = [cp.RawKernel(CODE.format(name=f"node_{i}"), f"node_{i}") for i in range(NODES + AROUND)]

Right = "Callable[[str, str], bool]"
"""Whether work of this name belongs to the op of this name."""


def launch(i: int, x, y) -> None:
    """Launch a kernel named after its node, on CuPy's current stream."""
    KERNELS[i]((1,), (128,), (x, y, np.int32(x.size)))


def work(x, y) -> None:
    """Launch a copy, a memset and all kernels, each in an op of its name."""
    stream = cp.cuda.get_current_stream()
    with epprof_nb.op("copy"):
        y.data.copy_from_device_async(x.data, x.nbytes, stream)
    with epprof_nb.op("set"):
        x.data.memset_async(0, x.nbytes, stream)
    for i in range(NODES):
        with epprof_nb.op(f"node_{i}"):
            launch(i, x, y)


def is_named_after(name: str, op: str) -> bool:
    """Whether the work of `work` is that of an op."""
    lower = name.lower()
    kinds = {"memcpy": "copy", "copy": "copy", "memset": "set"}
    return op == next((kinds[key] for key in kinds if key in lower), name)


def replays(run: Callable[[], object]) -> epprof_nb.Profile:
    """A profile of replays."""
    with epprof_nb.profile() as prof, epprof_nb.op("replays"):
        for _ in range(REPLAYS):
            run()
        cp.cuda.Device().synchronize()
    return prof


def of_cupy() -> Iterator[tuple[str, epprof_nb.Profile, Right]]:
    """Graphs that CuPy captures."""
    x, y, stream = cp.zeros(64, "f"), cp.zeros(64, "f"), cp.cuda.Stream(non_blocking=True)
    with epprof_nb.profile(), stream:
        stream.begin_capture()
        work(x, y)
        graph = stream.end_capture()
    yield "CuPy begin_capture", replays(lambda: graph.launch(stream)), is_named_after


def of_cuda_python() -> Iterator[tuple[str, epprof_nb.Profile, Right]]:
    """Graphs of cuda-python: executables, clones, updates, child graphs, conditional nodes."""
    from tests.benchmarks.shared.cuda_python_graphs import Graphs

    x, y = cp.zeros(64, "f"), cp.zeros(64, "f")

    def around(number: int) -> None:
        i = NODES + number
        with epprof_nb.op(f"node_{i}"):
            launch(i, x, y)

    graphs = Graphs(lambda: work(x, y), around)
    with epprof_nb.profile():
        made = {}
        for title, make in graphs.made():
            try:
                made[title] = make()
            except RuntimeError as error:
                print(f"cuda-python, {title}: failed ({error})")
    for title, executable in made.items():
        prof = replays(lambda e=executable: graphs.launch(e))
        yield f"cuda-python, {title}", prof, is_named_after


def of_torch() -> Iterator[tuple[str, epprof_nb.Profile, Right]]:
    """Graphs that torch captures, of kernels launched through CuPy."""
    import torch

    x, y = (cp.from_dlpack(torch.zeros(64, device="cuda")) for _ in range(2))
    graph = torch.cuda.CUDAGraph()
    with (
        epprof_nb.profile(),
        torch.cuda.graph(graph),
        cp.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream),
    ):
        work(x, y)
    yield "torch.cuda.CUDAGraph", replays(graph.replay), is_named_after


def of_compiled() -> Iterator[tuple[str, epprof_nb.Profile, Right]]:
    """Graphs of ``torch.compile``, each of one kernel, which Triton names after its functions."""
    # Starting a pool of processes takes longer than compiling two kernels.
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    import torch

    functions = {name: torch.compile(getattr(torch, name), mode="reduce-overhead")
                 for name in ("sigmoid", "relu")}  # fmt: skip
    x = torch.ones(64, device="cuda")
    with torch.no_grad():
        with epprof_nb.profile():
            for name, function in functions.items():
                for _ in range(3):
                    with epprof_nb.op(name):
                        function(x)
        prof = replays(lambda: [function(x) for function in functions.values()])
    title = 'torch.compile(mode="reduce-overhead")'

    def right(name: str, op: str) -> bool:
        return op in name if "triton" in name else True  # copies into the graph's input

    yield title, prof, right


def define(i: int) -> None:
    """Define a kernel that launches the work of a node; the first one also copies and memsets."""

    @ep.kernel(f"Node{i}", domain="attribution")
    def node(ctx, x):
        y = ctx.out(x.shape, x.dtype)
        if i == 0:
            stream = cp.cuda.get_current_stream()
            y.data.copy_from_device_async(x.data, x.nbytes, stream)
            y.data.memset_async(0, x.nbytes, stream)
        launch(i, x, y)


def of_our_provider() -> Iterator[tuple[str, epprof_nb.Profile, Right]]:
    """Graphs of kernels in Python, captured in a profile, before it, and by four threads."""
    import onnxruntime
    from onnx import helper

    from tests.ep.sessions import model

    for i in range(NODES):
        define(i)

    made = [
        helper.make_node(
            f"Node{i}", [f"v{i}"], [f"v{i + 1}"], name=f"node_{i}", domain="attribution"
        )
        for i in range(NODES)
    ]
    feeds = {"v0": np.zeros(64, np.float32)}
    serialized = model(made, feeds, {f"v{NODES}": np.float32}, domains=["attribution"])

    def session():
        return ep.session(serialized, device="cuda:0", enable_cuda_graph=True)

    def right(name: str, op: str) -> bool:
        return op == (name if name.startswith("node_") else "node_0")

    inside, before, shared = session(), session(), session()
    with epprof_nb.profile():
        inside.run(None, feeds)
    yield "kernels in Python", replays(lambda: inside.run(None, feeds)), right
    before.run(None, feeds)
    title = "kernels in Python, captured before"
    yield title, replays(lambda: before.run(None, feeds)), right

    def run_both(thread: int) -> None:
        for i in range(REPLAYS):
            for number in ("1", "2"):
                options = onnxruntime.RunOptions()
                options.add_run_config_entry("gpu_graph_id", number)
                x = np.full(64, 100 * thread + i, np.float32)
                (y,) = shared.run(None, {"v0": x}, options)
                np.testing.assert_array_equal(y, x + NODES)

    with epprof_nb.profile() as prof, ThreadPoolExecutor(4) as pool:
        list(pool.map(run_both, range(4)))
    yield "kernels in Python, 4 threads, 8 graphs", prof, right


def of_cuda_provider() -> Iterator[tuple[str, epprof_nb.Profile, Right]]:
    """Graphs of ONNX Runtime's CUDA provider, of operators whose kernels name them."""
    import onnxruntime
    from onnx import helper

    from tests.ep.sessions import model, options

    operators = ("Neg", "Abs", "Exp", "Sigmoid", "Tanh", "Floor", "Ceil", "Sqrt", "Cos", "Sin")
    made = [
        helper.make_node(name, [f"v{i}"], [f"v{i + 1}"], name=name)
        for i, name in enumerate(operators)
    ]
    x = np.zeros(64, np.float32)
    serialized = model(made, {"v0": x}, {f"v{len(made)}": np.float32})
    session = onnxruntime.InferenceSession(
        serialized, options(), providers=[("CUDAExecutionProvider", {"enable_cuda_graph": "1"})]
    )
    binding = session.io_binding()
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(x, "cuda", 0) for _ in range(2)]
    binding.bind_ortvalue_input("v0", values[0])
    binding.bind_ortvalue_output(f"v{len(made)}", values[1])
    with epprof_nb.profile():
        session.run_with_iobinding(binding)
    prof = replays(lambda: session.run_with_iobinding(binding))
    yield "CUDA provider", prof, lambda name, op: f"OP_{op}" in name


SOURCES = {
    "kernels": of_our_provider,
    "provider": of_cuda_provider,
    "torch": of_torch,
    "compile": of_compiled,
    "cupy": of_cupy,
    "cuda-python": of_cuda_python,
}


def shares(prof: epprof_nb.Profile, right: Right) -> dict[str, str]:
    """Share of the work of replays whose ops are the right ones, by kind.

    The capturing op is right if it or an ancestor is, because frameworks add ops of their own.
    """
    rows = prof.activities
    rows = rows[rows["graph_id"].notna() & (rows["kind"] != "graph_launch")]
    names, parents = prof.ops["name"].astype(str).to_dict(), prof.ops["parent_op_id"].to_dict()

    def path(op: object) -> list[str]:
        found = []
        while op in names:
            found.append(names[op])
            op = parents[op]
        return found

    paths = {op: path(op) for op in rows["capture_op_id"].dropna().unique()}
    work = list(zip(rows["name"].astype(str), rows["capture_op_id"], strict=True))
    found = [any(right(name, op) for op in paths.get(op, ())) for name, op in work]
    wrong = {
        (name, " < ".join(paths.get(op, ["no op"])))
        for (name, op), is_right in zip(work, found, strict=True)
        if not is_right
    }
    for name, where in sorted(wrong)[:5]:
        print(f"  wrong: {name} in {where}")
    by_kind = pd.Series(found).groupby(rows["kind"].astype(str).to_numpy()).agg(["sum", "size"])
    of = {kind: f"{row['sum']:,} of {row['size']:,}" for kind, row in by_kind.iterrows()}
    launched = int(rows["op_id"].notna().sum())
    return {**of, "op of the launch": f"{launched:,} of {len(rows):,}"}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", nargs="+", choices=SOURCES, default=list(SOURCES))
    args = parser.parse_args()
    name = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    header(f"Attribution of graph replays on {name}")
    epprof_nb.onnxruntime.install()
    x = cp.zeros(64, "f")
    for i in range(NODES + AROUND):
        launch(i, x, x)  # compiles it
    table: dict[str, dict[str, str]] = {}
    for source in args.sources:
        try:
            for title, prof, right in SOURCES[source]():
                table[title] = shares(prof, right)
        except ImportError as error:
            print(f"{source}: left out ({error})")
        except Exception:
            print(f"{source}: failed\n{traceback.format_exc()}")
    print(pd.DataFrame.from_dict(table, orient="index").fillna("").to_string())


if __name__ == "__main__":
    main()
