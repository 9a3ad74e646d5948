"""Steps of models of which a part can be left out: GPT-2's attention, a node of ONNX Runtime."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

import epprof_nb
from tests.benchmarks.shared.known_truth import CudaDevice

if TYPE_CHECKING:
    from tests.benchmarks.shared.known_truth import HostDevice, Scale, Step


@cache
def _gpt2(kind: str) -> Any:
    import torch
    from torch import nn

    from tests.benchmarks.shared.transformers_work import gpt2

    class Attention(nn.Module):
        """Attention in the op ``changed``, which can be left out."""

        def __init__(self, attention: nn.Module) -> None:
            super().__init__()
            self.attention, self.is_left_out = attention, False

        def forward(self, states: torch.Tensor, *inputs: object, **options: object) -> object:
            if self.is_left_out:
                return states, None
            with epprof_nb.op("changed"):
                return self.attention(states, *inputs, **options)

    model = gpt2(kind, small=kind == "cpu").eval()
    for block in model.transformer.h:
        block.attn = Attention(block.attn)
    return model


def _gpt2_without_attention(d: HostDevice | CudaDevice, scale: Scale) -> None:
    import torch

    kind = "cuda" if isinstance(d, CudaDevice) else "cpu"
    model = _gpt2(kind)
    for block in model.transformer.h:
        block.attn.is_left_out = not scale.of("changed")
    # Large enough on a GPU for the device to be the limit: the host's times scatter.
    batch, length = (32, 16 * round(scale.ms(48))) if kind == "cuda" else (4, round(scale.ms(256)))
    tokens = torch.arange(batch * length).reshape(batch, length) % model.config.vocab_size
    with torch.no_grad(), torch.autocast(kind, torch.bfloat16):
        model.transformer(input_ids=tokens.to(kind), use_cache=False).last_hidden_state[:, -1].cpu()


@cache
def _session(kind: str, size: int, *, has_node: bool) -> Any:
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    # CUDA's provider has no kernel for Sinh and Atan, so both run on the CPU.
    weights = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32) / size
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "first"),
        helper.make_node("Sinh", ["a"], ["b"], "fallback"),
        helper.make_node("MatMul", ["c" if has_node else "b", "w"], ["y"], "last"),
    ]
    if has_node:
        nodes.insert(2, helper.make_node("Atan", ["b"], ["c"], "changed"))
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size])] for name in ("x", "y")
    ]
    graph = helper.make_graph(nodes, "fallback", *ends, [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    providers = ["CUDAExecutionProvider"] * (kind == "cuda") + ["CPUExecutionProvider"]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return epprof_nb.onnxruntime.session(
        model.SerializeToString(), sess_options=options, providers=providers
    )


def _node_on_cpu(d: HostDevice | CudaDevice, scale: Scale) -> None:
    kind = "cuda" if isinstance(d, CudaDevice) else "cpu"
    size = 64 * round(scale.ms(8 if kind == "cuda" else 4))
    session = _session(kind, size, has_node=bool(scale.of("changed")))
    x = np.ones((1024, size), np.float32)
    for _ in range(5):
        session.run(None, {"x": x})


def model_steps() -> dict[str, tuple[Step, tuple[float, ...]]]:
    """Return the steps whose packages are installed, like `STEPS`."""
    steps: dict[str, tuple[Step, tuple[float, ...]]] = {}
    if importlib.util.find_spec("transformers"):
        steps["GPT-2 without attention"] = (_gpt2_without_attention, (0, 0))
    if importlib.util.find_spec("onnxruntime") and importlib.util.find_spec("onnx"):
        steps["ONNX Runtime, a node on the CPU"] = (_node_on_cpu, (0, 0))
    return steps
