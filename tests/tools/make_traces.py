"""Record the traces in ``tests/data/traces`` with the tools that they are of.

    python tests/tools/make_traces.py kineto        # needs torch
    python tests/tools/make_traces.py onnxruntime   # needs onnx, onnxruntime
    python tests/tools/make_traces.py viztracer     # needs viztracer
    python tests/tools/make_traces.py jax           # needs jax; records on its CPU backend

Folders of the machine and its host name are replaced in the files; nothing else is changed.
"""

from __future__ import annotations

import gzip
import re
import socket
import sys
import tempfile
from pathlib import Path

OUTPUT = Path(__file__).parents[1] / "data" / "traces"


def kineto(folder: Path) -> None:
    """Two steps of a small model on the CPU, backward pass included."""
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    torch.set_num_threads(1)
    layers = torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    model, x = torch.nn.Sequential(*layers), torch.randn(4, 8)
    model(x).sum().backward()
    cpu = [ProfilerActivity.CPU]
    with profile(activities=cpu, record_shapes=True, profile_memory=True) as recorded:
        for _ in range(2):
            with record_function("step"):
                model(x).sum().backward()
    recorded.export_chrome_trace(str(folder / "trace.json"))
    keep(folder / "trace.json", f"kineto_cpu_torch_{torch.__version__.split('+')[0]}.json.gz")


def onnxruntime(folder: Path) -> None:
    """Two runs of a session whose nodes have names that JSON must escape."""
    import numpy as np
    import onnxruntime as ort
    from onnx import TensorProto, helper

    names = 'layer0/"Mat\\Mul"', "Relu\n1"
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["h"], name=names[0]),
            helper.make_node("Relu", ["h"], ["y"], name=names[1]),
        ],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])],
        [helper.make_tensor("w", TensorProto.FLOAT, [3, 4], np.ones(12).tolist())],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(folder / "run")
    session = ort.InferenceSession(model.SerializeToString(), options)
    for _ in range(2):
        session.run(None, {"x": np.ones((2, 3), np.float32)})
    keep(Path(session.end_profiling()), f"onnxruntime_{ort.__version__}.json.gz")


def viztracer(folder: Path) -> None:
    """Recursive calls of a Python function."""
    import viztracer as library

    def fibonacci(n: int) -> int:
        return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

    path = folder / "trace.json"
    with library.VizTracer(output_file=str(path), verbose=0, file_info=False):
        fibonacci(5)
    keep(path, f"viztracer_{library.__version__}.json.gz")


def jax(folder: Path) -> None:
    """Three calls of a compiled function, in steps with names."""
    import jax as library
    import jax.numpy as jnp

    @library.jit
    def layer(x: library.Array, w: library.Array) -> library.Array:
        return jnp.tanh(x @ w).sum()

    x, w = jnp.ones((64, 32)), jnp.ones((32, 16))
    layer(x, w).block_until_ready()
    options = library.profiler.ProfileOptions()
    options.python_tracer_level = 0  # names of files and thousands of calls otherwise
    with library.profiler.trace(str(folder), profiler_options=options):
        for step in range(3):
            with library.profiler.StepTraceAnnotation("step", step_num=step):
                layer(x, w).block_until_ready()
    [path] = folder.rglob("*.trace.json.gz")
    plain = folder / "trace.json"
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    keep(plain, f"jax_cpu_{library.__version__}.json.gz")


def keep(path: Path, name: str) -> None:
    """Write the trace without the machine's folders and name."""
    text = path.read_text(encoding="utf-8")
    for folder in (sys.prefix, sys.base_prefix, str(Path(__file__).parent), tempfile.gettempdir()):
        text = text.replace(folder, "/folder")
    text = re.sub(rf'"{re.escape(socket.gethostname())}"', '"host"', text)
    OUTPUT.mkdir(exist_ok=True)
    (OUTPUT / name).write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        tools = {"kineto": kineto, "onnxruntime": onnxruntime, "viztracer": viztracer, "jax": jax}
        tools[sys.argv[1]](Path(work))
