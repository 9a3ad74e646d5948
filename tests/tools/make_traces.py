"""Record the traces in ``tests/data/traces`` with their tools.

    python -m tests.tools.make_traces kineto        # and kineto_stacks: need torch
    python -m tests.tools.make_traces onnxruntime   # needs onnx, onnxruntime
    python -m tests.tools.make_traces viztracer     # needs viztracer
    python -m tests.tools.make_traces jax           # needs jax; records on its CPU backend

These need a CUDA device::

    python -m tests.tools.make_traces kineto_cuda   # and kineto_graphs: need torch
    python -m tests.tools.make_traces onnxruntime_cuda
    python -m tests.tools.make_traces jax_cuda

A second argument is the folder to write to. Folders of the machine and its host name are replaced
in the files; nothing else is changed.
"""

from __future__ import annotations

import gzip
import os
import re
import socket
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.paths import DATA

if TYPE_CHECKING:
    from collections.abc import Callable

OUTPUT = DATA / "traces"
if len(sys.argv) > 2:
    OUTPUT = Path(sys.argv[2])


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


def kineto_stacks(folder: Path) -> None:
    """Two steps of the training of nested modules, with the calls of Python."""
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    class SecretNet(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            blocks = [torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()) for _ in range(2)]
            self.blocks = torch.nn.Sequential(*blocks)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.blocks(x)

    torch.set_num_threads(1)
    model, x = SecretNet(), torch.randn(4, 8)
    model(x).sum().backward()
    recorded = profile(activities=[ProfilerActivity.CPU], with_stack=True, with_modules=True)
    with recorded:
        for _ in range(2):
            with record_function("step"):
                model(x).sum().backward()
    recorded.export_chrome_trace(str(folder / "trace.json"))
    keep(folder / "trace.json", f"kineto_stacks_torch_{torch.__version__.split('+')[0]}.json.gz")


def kineto_cuda(folder: Path) -> None:
    """Three training steps of a small attention block on a CUDA device, with copies and waits."""
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value = (torch.nn.Linear(64, 64) for _ in range(3))
            self.norm = torch.nn.LayerNorm(64)
            self.head = torch.nn.Sequential(
                torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 8)
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            attended = torch.nn.functional.scaled_dot_product_attention(
                self.query(x), self.key(x), self.value(x)
            )
            return self.head(self.norm(x + attended))

    model = Block().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    data = torch.randn(4, 32, 64).pin_memory()

    def step() -> float:
        optimizer.zero_grad()
        loss = model(data.cuda(non_blocking=True)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(3):
        step()
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        record_shapes=True,
        schedule=schedule(wait=0, warmup=1, active=3),
        on_trace_ready=lambda done: done.export_chrome_trace(str(folder / "trace.json")),
    ) as recorded:
        for _ in range(4):
            step()
            recorded.step()
    keep(folder / "trace.json", f"kineto_cuda_torch_{torch.__version__.split('+')[0]}.json.gz")


def kineto_graphs(folder: Path) -> None:
    """Five replays of a CUDA graph of a small network, each after an eager kernel and a copy."""
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(256, 256), torch.nn.ReLU())]
    model = torch.nn.Sequential(*layers).cuda()
    given, data = torch.zeros(64, 256, device="cuda"), torch.randn(64, 256).pin_memory()
    with torch.no_grad():
        model(given)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = model(given)
        graph.replay()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
            for _ in range(5):
                with record_function("step"):
                    given.copy_(data, non_blocking=True)
                    given.mul_(2)
                    graph.replay()
            result.sum().item()
    recorded.export_chrome_trace(str(folder / "trace.json"))
    keep(folder / "trace.json", f"kineto_graphs_torch_{torch.__version__.split('+')[0]}.json.gz")


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


def onnxruntime_cuda(folder: Path) -> None:
    """Three runs on the CUDA provider, which has no Atan: that node runs on the CPU."""
    import numpy as np
    import onnxruntime as ort
    from onnx import TensorProto, helper

    if hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
            helper.make_node("Relu", ["a"], ["b"], name="relu"),
            helper.make_node("Atan", ["b"], ["c"], name="angle"),
            helper.make_node("Softmax", ["c"], ["y"], name="softmax"),
        ],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [64, 16])],
        [helper.make_tensor("w", TensorProto.FLOAT, [32, 16], np.ones(512).tolist())],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.enable_profiling, options.profile_file_prefix = True, str(folder / "run")
    providers = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    session = ort.InferenceSession(model.SerializeToString(), options, providers=providers)
    for _ in range(3):
        session.run(None, {"x": np.ones((64, 32), np.float32)})
    keep(Path(session.end_profiling()), f"onnxruntime_cuda_{ort.__version__}.json.gz")


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
    """Three calls of a compiled function on the CPU, in steps with names."""
    import jax as library
    import jax.numpy as jnp

    library.config.update("jax_platforms", "cpu")

    @library.jit
    def layer(x: library.Array, w: library.Array) -> library.Array:
        return jnp.tanh(x @ w).sum()

    x, w = jnp.ones((64, 32)), jnp.ones((32, 16))
    _jax(folder, "cpu", lambda: layer(x, w).block_until_ready())


def jax_cuda(folder: Path) -> None:
    """Three calls of a network on a CUDA device, whose kernels XLA puts into a CUDA graph.

    Each copies its input to the device and its result back.
    """
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax as library
    import jax.numpy as jnp
    import numpy as np

    @library.jit
    def network(x: library.Array, weights: list[library.Array]) -> library.Array:
        for w in weights:
            x = jnp.tanh(x @ w)
        return x.sum(axis=1)

    data = np.ones((256, 256), np.float32)
    weights = [jnp.full((256, 256), 1 / 256) for _ in range(8)]
    _jax(folder, "cuda", lambda: np.asarray(network(library.device_put(data), weights)))


def _jax(folder: Path, backend: str, step: Callable[[], object]) -> None:
    import jax as library

    for _ in range(3):
        step()
    options = library.profiler.ProfileOptions()
    options.python_tracer_level = 0  # names of files and thousands of calls otherwise
    with library.profiler.trace(str(folder), profiler_options=options):
        for number in range(3):
            with library.profiler.StepTraceAnnotation("step", step_num=number):
                step()
    [path] = folder.rglob("*.trace.json.gz")
    plain = folder / "trace.json"
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    keep(plain, f"jax_{backend}_{library.__version__}.json.gz")


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
        tools = (
            kineto, kineto_stacks, kineto_cuda, kineto_graphs, onnxruntime, onnxruntime_cuda,
            viztracer, jax, jax_cuda,
        )  # fmt: skip
        {tool.__name__: tool for tool in tools}[sys.argv[1]](Path(work))
