"""Whole models and session creation on kernels in Python, against ONNX Runtime's providers.

The models run on the host device, in NumPy, against the CPU provider. On a CUDA device (``--device
cuda:0``, needs CuPy and onnxruntime-gpu) they run against the CUDA provider, each eager and as a
graph, with inputs and outputs bound to device memory. Needs onnx.
"""

from __future__ import annotations

import argparse
import math
import time
from functools import partial

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

from epprof_nb import ep
from tests.benchmarks.shared import onnx_models
from tests.benchmarks.shared.harness import header, paired, ratios, show
from tests.benchmarks.shared.onnx_models import Graph
from tests.ep import models, onnx_backend

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def bert(layers: int, batch: int, length: int, hidden: int, heads: int) -> bytes:
    """An encoder of the shape of BERT, without its embeddings."""
    g = Graph()
    x = "x"
    split = g.constant(np.array([batch, length, heads, hidden // heads], np.int64))
    merge = g.constant(np.array([batch, length, hidden], np.int64))
    scale = g.constant(np.float32(1 / math.sqrt(hidden // heads)))
    for _ in range(layers):
        q, k, v = (
            g.node("Transpose", g.node("Reshape", g.linear(x, hidden, hidden), split), perm=p)
            for p in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        weights = g.node("Softmax", g.node("Mul", g.node("MatMul", q, k), scale), axis=-1)
        y = g.node("Transpose", g.node("MatMul", weights, v), perm=[0, 2, 1, 3])
        y = g.linear(g.node("Reshape", y, merge), hidden, hidden)
        x = g.normalized(g.node("Add", x, y), hidden)
        y = g.node("Gelu", g.linear(x, hidden, 4 * hidden))
        x = g.normalized(g.node("Add", x, g.linear(y, 4 * hidden, hidden)), hidden)
    shape = [batch, length, hidden]
    graph = helper.make_graph(
        g.nodes, "bert",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)],
        g.weights,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 9
    return model.SerializeToString()


def elementwise(nodes: int) -> bytes:
    """A chain of operators of four types."""
    types = ("Relu", "Neg", "Sigmoid", "Abs")
    made = [
        helper.make_node(types[i % 4], [f"t{i}"], [f"t{i + 1}"], name=f"n{i}") for i in range(nodes)
    ]
    graph = helper.make_graph(
        made, "chain",
        [helper.make_tensor_value_info("t0", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info(f"t{nodes}", TensorProto.FLOAT, None)],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model.SerializeToString()


def given_models(args) -> dict[str, tuple[bytes, dict[str, np.ndarray]]]:
    """Models and their inputs, by title."""
    given = {name: onnx_models.MODELS[name](args.batch) for name in args.full_size}
    for kind in map(np.dtype, args.kinds):
        for name in args.models:
            if name == "bert":
                title, made = (
                    f"BERT, {args.layers} layers, {args.batch} x {args.length}",
                    _bert(args),
                )
                if kind == np.float16:
                    made = (models.in_float16(made[0]), {"x": made[1]["x"].astype(kind)})
            else:
                title = f"{name}, 1/8 as wide"
                made = (models.load(name, kind), models.feeds(name, kind, batch=1))
            given[f"{title}, {kind.name}"] = made
    return given


def _bert(args) -> tuple[bytes, dict[str, np.ndarray]]:
    size = {"batch": args.batch, "length": args.length, "hidden": args.hidden}
    shape = (args.batch, args.length, args.hidden)
    feeds = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return bert(args.layers, **size, heads=args.hidden // 64), {"x": feeds}


def runs(args) -> None:
    """Print the time of a run of each model on both providers."""
    for name, (model, inputs) in given_models(args).items():
        entries = {"CPU provider": [CPU], "kernels": [ep.provider("host"), CPU]}
        variants = {}
        for label, providers in entries.items():
            run = partial(ort.InferenceSession(model, providers=providers).run, None, inputs)
            run()
            variants[label] = partial(_seconds, run, args.runs)
        print(name)
        show(paired(variants, args.rounds), ("CPU provider",), "ms", 1e3 / args.runs)


def runs_on_cuda(args) -> None:
    """Print the time of a run of each model on a CUDA device, eager and as a graph.

    Both providers multiply float32 in float32, and in TF32, which is the CUDA provider's default.
    """
    number = int(args.device.partition(":")[2] or 0)
    for name, (model, inputs) in given_models(args).items():
        print(name)
        expected = ort.InferenceSession(model, providers=[CPU]).run(None, inputs)
        for how, graph in (("eager", {}), ("graph", {"enable_cuda_graph": "1"})):
            for precision, tf32 in (("float32", "0"), ("TF32", "1")):
                if precision == "TF32" and "float16" in name:
                    continue
                options = {"device_id": number, "use_tf32": tf32, **graph}
                ours = ep.provider(args.device, use_tf32=tf32 == "1", enable_cuda_graph=bool(graph))
                entries = {"CUDA provider": [(CUDA, options)], "kernels": [ours, CPU]}
                print(f"{how}, {precision}")
                _compare_on_cuda(args, entries, model, inputs, expected, number)


def _compare_on_cuda(args, entries, model, inputs, expected, number: int) -> None:
    """Print the errors and times of the sessions with some lists of providers."""
    variants = {}
    for label, providers in entries.items():
        try:
            made = ort.InferenceSession(model, providers=providers, enable_fallback=0)
        except Exception as error:
            print(f"{label}: no session: {str(error).splitlines()[0][:150]}")
            continue
        binding, outputs = _bound(made, inputs, expected, number)
        for _ in range(3):
            made.run_with_iobinding(binding)
        binding.synchronize_outputs()
        error = np.abs(outputs[0].numpy().astype(np.float64) - expected[0]).max()
        error /= np.abs(expected[0]).max()
        print(f"{label}: differs from the CPU provider by {error:.1e} of its largest number")
        variants[label] = partial(_seconds_bound, made, binding, args.runs)
    if variants:
        show(paired(variants, args.rounds), tuple(variants)[:1], "us", 1e6 / args.runs)


def _bound(made, inputs, results, number: int):
    """A binding of a session with inputs and outputs on a CUDA device, and its outputs."""
    binding = made.io_binding()
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(value, "cuda", number))
    outputs = []
    for described, value in zip(made.get_outputs(), results, strict=True):
        buffer = ort.OrtValue.ortvalue_from_numpy(value, "cuda", number)
        binding.bind_ortvalue_output(described.name, buffer)
        outputs.append(buffer)
    return binding, outputs


def _seconds_bound(made, binding, count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        made.run_with_iobinding(binding)
    binding.synchronize_outputs()
    return time.perf_counter() - begin


def _seconds(call, count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - begin


def backend_tests() -> None:
    """Print how many of ONNX's backend node tests pass."""
    results = onnx_backend.run_all(onnx_backend.load_cases())
    passed = sum(result.passed for result in results)
    print(f"backend node tests: {passed} of {len(results)} that ONNX Runtime loads pass\n")


def creation(args) -> None:
    """Print the processor time of creating sessions, which a busy machine disturbs less."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1

    def create(model, providers):
        def processor_seconds():
            begin = time.process_time()
            for _ in range(10):
                ort.InferenceSession(model, options, providers=providers)
            return time.process_time() - begin

        processor_seconds()
        return processor_seconds

    for nodes in (200, 500):
        model = elementwise(nodes)
        results = paired(
            {
                "CPU provider": create(model, [CPU]),
                "kernels": create(model, [ep.provider("host"), CPU]),
            },
            args.rounds,
        )
        low, middle, high = ratios(results, "CPU provider")["kernels"]
        print(
            f"creating a session of {nodes} nodes: {middle:.2f}x the CPU provider "
            f"({low:.2f}-{high:.2f}), processor time"
        )
    print()


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    known = ["bert", "resnet50", "mobilenet", "gpt2"]
    parser.add_argument("--models", nargs="*", choices=known, default=known[:3])
    parser.add_argument("--full-size", nargs="+", choices=onnx_models.MODELS, default=[])
    kinds = ["float32", "float16"]
    parser.add_argument("--kinds", nargs="+", choices=kinds, default=kinds[:1])
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", default="host", help="host or cuda:0")
    args = parser.parse_args()
    header(f"Models on kernels in Python, ONNX Runtime {ort.__version__}, device {args.device}")
    if args.device != "host":
        ort.preload_dlls()
        runs_on_cuda(args)
        return
    backend_tests()
    creation(args)
    runs(args)


if __name__ == "__main__":
    main()
