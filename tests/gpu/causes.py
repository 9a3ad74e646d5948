"""Cells with a cause of lost time and the same cells without it, on a CUDA device."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

if TYPE_CHECKING:
    from epprof_nb.profiles import Profile


@dataclass(frozen=True)
class Cause:
    """Source of a cell with a cause, and of one without it.

    `kind` is that of the finding, `line` the innermost line of the user: of `slow` below the
    magic, or of a function of the setup that `slow` calls.
    """

    kind: str
    line: int
    slow: str
    fast: str


SETUP = """
import time
import cupy, cupyx
import numpy as np
from tests.gpu.oracle import kernel

def spin(ms, name="step"):
    kernel(name)((1,), (1,), (int(ms * cycles),))

def prepare(ms):
    end = time.perf_counter() + ms / 1e3
    while time.perf_counter() < end:
        pass

def upload(device, source, stream):
    device.data.copy_from_host_async(source.ctypes.data, source.nbytes, stream)

done = cupy.cuda.get_current_stream().synchronize
cycles = 1_000_000
for _ in range(2):  # the first launch compiles
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    begin.record(); spin(50); end.record(); done()
    ms = cupy.cuda.get_elapsed_time(begin, end) / 50
cycles = int(cycles / ms)
spin(0.1, "graph_step")

x = cupy.ones(1000)
pageable = np.ones(2**24, np.float32)
pinned = [cupyx.empty_pinned(2**24, np.float32) for _ in range(2)]
for one in pinned: one[:] = 1
device = [cupy.ones(2**24, cupy.float32) for _ in range(2)]
copier, compute = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)

def captured(launches, ms, name):
    with compute:
        compute.begin_capture()
        for _ in range(launches): spin(ms, name)
        return compute.end_capture()

short_graph = captured(100, 0.002, "step")
long_graph = captured(20, 0.05, "graph_step")
for graph in (short_graph, long_graph): graph.launch(compute)
x.sum().get(); upload(device[0], pinned[0], copier); device[0].set(pageable)
cupy.cuda.Device().synchronize()
"""

WAITS = {call: Cause(
    "wait", 6,
    f"results = []\n"
    f"for i in range(40):\n"
    f"    spin(2)\n"
    f"    y = x.sum()\n"
    f"    results.append({call})\n"
    f"    prepare(1.5)\n"
    f"done()\n",
    "results = []\n"
    "for i in range(40):\n"
    "    spin(2)\n"
    "    y = x.sum()\n"
    "    results.append(y)\n"
    "    prepare(1.5)\n"
    "done()\n",
) for call in ("y.get()", "y.item()", "float(y)")}  # fmt: skip

PAGEABLE = Cause(
    "pageable copies", 3,
    "for i in range(10):\n"
    "    device[0].set(pageable)\n"
    "    spin(1)\n"
    "done()\n",
    "for i in range(10):\n"
    "    device[0].set(pinned[0])\n"
    "    spin(1)\n"
    "done()\n",
)  # fmt: skip

LAUNCHES = Cause(
    "launch-bound", 7,
    "for i in range(20):\n"
    "    for j in range(100):\n"
    "        spin(0.002)\n"
    "done()\n",
    "for i in range(20):\n"
    "    short_graph.launch(compute)\n"
    "compute.synchronize()\n",
)  # fmt: skip

OVERLAP = Cause(
    "copies that could overlap", 15,
    "for i in range(12):\n"
    "    upload(device[0], pinned[0], compute)\n"
    "    with compute: spin(1.5)\n"
    "compute.synchronize()\n",
    "computed = [compute.record(), compute.record()]\n"
    "for i in range(12):\n"
    "    copier.wait_event(computed[i % 2])\n"
    "    upload(device[i % 2], pinned[i % 2], copier)\n"
    "    compute.wait_event(copier.record())\n"
    "    with compute: spin(1.5)\n"
    "    computed[i % 2] = compute.record()\n"
    "compute.synchronize()\n",
)  # fmt: skip

REPLAY = (
    "begin, end = cupy.cuda.Event(), cupy.cuda.Event()\n"
    "begin.record(compute)\n"
    "for i in range(50):\n"
    "    long_graph.launch(compute)\n"
    "end.record(compute)\n"
    "compute.synchronize()\n"
)
"""A device that is busy throughout, although the host makes 50 calls alone."""

SESSION_SETUP = """
import onnxruntime as ort
import epprof_nb
from onnx import TensorProto, helper

def session_of(op_type):
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1024, 1024])
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["a"], name="before"),
        helper.make_node(op_type, ["a"], ["b"], name="middle"),
        helper.make_node("MatMul", ["b", "b"], ["y"], name="after"),
    ]
    graph = helper.make_graph(nodes, "graph", [value("x")], [value("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    options = ort.SessionOptions()
    options.log_severity_level = 3
    providers = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    return ort.InferenceSession(model.SerializeToString(), options, providers=providers)

if hasattr(ort, "preload_dlls"): ort.preload_dlls()
epprof_nb.onnxruntime.install(nodes="every")
matrix = np.ones((1024, 1024), np.float32)
on_cpu, on_gpu = session_of("Atan"), session_of("Tanh")  # CUDA's provider has no Atan
for session in (on_cpu, on_gpu): session.run(None, {"x": matrix})
"""

FALLBACK = Cause(
    "cpu fallback", 3,
    "for i in range(10):\n"
    "    y = on_cpu.run(None, {'x': matrix})\n",
    "for i in range(10):\n"
    "    y = on_gpu.run(None, {'x': matrix})\n",
)  # fmt: skip

CAUSES = {
    **{f"wait in {call}": cause for call, cause in WAITS.items()},
    "pageable copies": PAGEABLE,
    "short kernels": LAUNCHES,
    "copies that could overlap": OVERLAP,
    "fallback to the CPU": FALLBACK,
}


@cache
def shell() -> InteractiveShell:
    """A shell with the magic and the variables of the cells."""
    created = InteractiveShell.instance(config=Config(HistoryManager={"hist_file": ":memory:"}))
    created.run_line_magic("load_ext", "epprof_nb")
    created.run_cell(SETUP).raise_error()
    return created


@cache
def has_sessions() -> bool:
    """Prepare the sessions; whether ONNX Runtime has CUDA's provider."""
    try:
        import onnx  # noqa: F401
        import onnxruntime
    except ImportError:
        return False
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        return False
    shell().run_cell(SESSION_SETUP).raise_error()
    return True


def profiled(source: str) -> Profile:
    """Run a cell with the magic and return its profile."""
    running: Any = shell()
    running.run_cell("cupy.cuda.Device().synchronize()").raise_error()
    running.run_cell(f"%%gpuprofile -q prof\n{source}").raise_error()
    return running.user_ns["prof"]


def seconds(source: str) -> float:
    """Run a cell without the magic and return how long it took."""
    running: Any = shell()
    running.run_cell("cupy.cuda.Device().synchronize()").raise_error()
    begin = time.perf_counter()
    running.run_cell(source).raise_error()
    return time.perf_counter() - begin


def of_kind(prof: Profile, kind: str):
    """Return the findings of one kind."""
    rows = prof.insights()
    return rows[rows["kind"] == kind]
