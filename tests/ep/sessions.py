"""Models of one node, and sessions that say where their nodes run."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.helper import np_dtype_to_tensor_dtype

OURS, CPU = "EpprofExecutionProvider", "CPUExecutionProvider"


def model(nodes, feeds, outputs, *, opset=18, domains=()):
    """Serialized model with these nodes; inputs like `feeds`, every dimension free."""
    inputs = [
        helper.make_tensor_value_info(
            name, np_dtype_to_tensor_dtype(value.dtype), [None] * value.ndim
        )
        for name, value in feeds.items()
    ]
    ends = [
        helper.make_tensor_value_info(name, np_dtype_to_tensor_dtype(np.dtype(kind)), None)
        for name, kind in outputs.items()
    ]
    graph = helper.make_graph(nodes, "graph", inputs, ends)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    made = helper.make_model(graph, opset_imports=opsets)
    made.ir_version = 9
    return made.SerializeToString()


def one_node(op_type, inputs, attributes=None, *, outputs=1, opset=18, domain="", fixed=False):
    """Serialized model of one node called ``node``, and its feeds; None leaves an input out.

    `outputs` is their number, or the numbers of those that the node has. Their types are those that
    ONNX Runtime infers. `fixed` declares the shapes of the inputs.
    """
    feeds = {f"i{n}": np.asarray(v) for n, v in enumerate(inputs) if v is not None}
    names = ["" if v is None else f"i{n}" for n, v in enumerate(inputs)]
    present = range(outputs) if isinstance(outputs, int) else outputs
    wanted = [f"o{n}" if n in present else "" for n in range(max(present) + 1)]
    node = helper.make_node(
        op_type, names, wanted, name="node", domain=domain, **(attributes or {})
    )
    domains = (domain,) if domain else ()
    made = onnx.load_from_string(model([node], feeds, {}, opset=opset, domains=domains))
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted if name)
    for value, feed in zip(made.graph.input, feeds.values(), strict=True):
        for dim, size in zip(value.type.tensor_type.shape.dim, feed.shape, strict=True):
            if fixed:
                dim.dim_value = size
    return made.SerializeToString(), feeds


def call_in_kernel(ep, function, *arrays):
    """Call a function with CuPy and arrays on a device, inside a kernel; return its result."""
    kept = {}

    @ep.kernel("Relu")
    def relu(ctx, x):
        given = [None if a is None else ctx.xp.asarray(a) for a in arrays]
        kept["result"] = function(ctx.xp, *given).get()
        ctx.out(x.shape)[...] = x

    feeds = {"x": np.ones(1, np.float32)}
    node = helper.make_node("Relu", ["x"], ["y"])
    ep.session(model([node], feeds, {"y": np.float32}), device="cuda:0").run(None, feeds)
    return kept["result"]


def model_of(op_type, feeds, kind=np.float32, *, domain="", outputs=("y",), **attributes):
    """Serialized model of one node called ``node`` with inputs like `feeds`."""
    names = list(feeds)
    node = helper.make_node(op_type, names, outputs, name="node", domain=domain, **attributes)
    ends = {name: kind for name in outputs if name}
    return model([node], feeds, ends, domains=[domain] if domain else [])


def sigmoid(ctx, x):
    """Kernel of Sigmoid."""
    np.copyto(ctx.out(x.shape, x.dtype), 1 / (1 + np.exp(-x)))


def options(**entries):
    """Session options that record where nodes run, without optimisations."""
    made = onnxruntime.SessionOptions()
    made.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    made.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    for name, value in entries.items():
        setattr(made, name, value)
    return made


def placement(session):
    """Provider by name of node."""
    return {
        node.name: part.ep_name
        for part in session.get_provider_graph_assignment_info()
        for node in part.get_nodes()
    }


def session(serialized, entry, *, others=(CPU,), **entries):
    return onnxruntime.InferenceSession(serialized, options(**entries), providers=[entry, *others])


def on_cpu(serialized):
    return onnxruntime.InferenceSession(serialized, providers=[CPU])


def run_options(number):
    """Run options with this id of a graph."""
    made = onnxruntime.RunOptions()
    made.add_run_config_entry("gpu_graph_id", str(number))
    return made


class Computes(list):
    """The address that each call of a kernel of the `computes` fixture read."""

    def __init__(self, device):
        super().__init__()
        self.calls_per_replay = 1 if device == "host" else 0


class CallCounter:
    """Counts calls of kernels by domain and type of their operators."""

    def __init__(self, kernels):
        self._kernels = kernels
        self.calls = {}

    def _counted(self, function):
        def kernel(ctx, *inputs):
            key = (ctx.domain, ctx.op_type)
            self.calls[key] = self.calls.get(key, 0) + 1
            function(ctx, *inputs)

        kernel.__name__ = getattr(function, "__name__", "kernel")
        return kernel

    def __enter__(self):
        self._functions = [(k, k.function) for k in self._kernels]
        for kernel, function in self._functions:
            kernel.cell[0] = self._counted(function)
        return self

    def __exit__(self, *_):
        for kernel, function in self._functions:
            kernel.cell[0] = function


__all__ = ["CPU", "OURS", "CallCounter", "Computes", "TensorProto", "call_in_kernel", "helper",
           "model", "model_of", "on_cpu", "one_node", "options", "placement", "run_options",
           "session", "sigmoid"]  # fmt: skip
