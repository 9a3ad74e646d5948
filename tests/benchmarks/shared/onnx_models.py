"""Models of the size and structure of published ones, with random weights. Needs onnx.

The nodes are those that PyTorch exports for opset 18: a GELU is a chain of five nodes, and batch
normalizations are part of convolutions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Callable

Model = tuple[bytes, dict[str, np.ndarray]]
"""A serialized model and its inputs by name."""


class Graph:
    """Nodes and random weights of a model that is being built."""

    def __init__(self) -> None:
        self.nodes: list = []
        self.weights: list = []
        self._rng = np.random.default_rng(0)

    def weight(self, *shape: int, scale: float = 0.02) -> str:
        """Add a random weight and return its name."""
        values = self._rng.standard_normal(shape).astype(np.float32) * np.float32(scale)
        return self.constant(values)

    def constant(self, values: np.ndarray) -> str:
        """Add a tensor and return its name."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, op_type: str, *inputs: str, **attributes: object) -> str:
        """Add a node with one output and return its name."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], name=f"n_{name}", **attributes))
        return name

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        """Add a product with a matrix and a bias."""
        product = self.node("MatMul", x, self.weight(inputs, outputs))
        return self.node("Add", product, self.weight(outputs))

    def normalized(self, x: str, size: int) -> str:
        """Add a layer normalization."""
        ones = self.constant(np.ones(size, np.float32))
        return self.node("LayerNormalization", x, ones, self.weight(size), axis=-1)

    def number(self, value: float) -> str:
        """Add a scalar and return its name."""
        return self.constant(np.float32(value))

    def gelu(self, x: str) -> str:
        """Add a GELU in five nodes."""
        erf = self.node("Erf", self.node("Mul", x, self.number(math.sqrt(0.5))))
        half = self.node("Mul", x, self.number(0.5))
        return self.node("Mul", half, self.node("Add", erf, self.number(1)))

    def swish(self, x: str, factor: float = 1) -> str:
        """Add a product with a sigmoid."""
        scaled = x if factor == 1 else self.node("Mul", x, self.number(factor))
        return self.node("Mul", x, self.node("Sigmoid", scaled))

    def convolution(
        self, x: str, inputs: int, outputs: int, size: int, stride: int = 1, group: int = 1
    ) -> str:
        """Add a convolution with a bias; the image keeps its size apart from the stride."""
        depth = inputs // group
        scale = math.sqrt(1.5 / (depth * size * size))
        before = (size - 1) // 2 if stride < size else 0
        return self.node(
            "Conv", x, self.weight(outputs, depth, size, size, scale=scale), self.weight(outputs),
            kernel_shape=[size, size], strides=[stride, stride], pads=[before] * 4, group=group,
        )  # fmt: skip

    def reshaped(self, x: str, *shape: int) -> str:
        """Add a change of shape."""
        return self.node("Reshape", x, self.constant(np.array(shape, np.int64)))

    def attention(self, x: str, batch: int, hidden: int, heads: int, mask: str = "") -> str:
        """Add an attention of a sequence to itself."""
        q, k, v = (
            self.node(
                "Transpose",
                self.reshaped(self.linear(x, hidden, hidden), batch, -1, heads, hidden // heads),
                perm=order,
            )
            for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )
        scale = self.number(1 / math.sqrt(hidden // heads))
        scores = self.node("Mul", self.node("MatMul", q, k), scale)
        if mask:
            scores = self.node("Add", scores, mask)
        weighted = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        joined = self.node("Transpose", weighted, perm=[0, 2, 1, 3])
        return self.linear(self.reshaped(joined, batch, -1, hidden), hidden, hidden)

    def model(self, result: str, inputs: dict[str, np.ndarray], opset: int = 18) -> Model:
        """Return a model with a result and the given inputs."""
        described = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
            )
            for name, value in inputs.items()
        ]
        output = helper.make_tensor_value_info(result, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "graph", described, [output], self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        made.ir_version = 9
        return made.SerializeToString(), inputs


def _image(batch: int) -> dict[str, np.ndarray]:
    values = np.random.default_rng(1).standard_normal((batch, 3, 224, 224))
    return {"image": values.astype(np.float32)}


def vit(batch: int) -> Model:
    """ViT-B/16: twelve layers of 768 numbers at 196 places."""
    g, hidden = Graph(), 768
    patches = g.reshaped(g.convolution("image", 3, hidden, 16, 16), batch, hidden, -1)
    x = g.node("Transpose", patches, perm=[0, 2, 1])
    x = g.node("Concat", g.weight(batch, 1, hidden), x, axis=1)
    x = g.node("Add", x, g.weight(1, 197, hidden))
    for _ in range(12):
        x = g.node("Add", x, g.attention(g.normalized(x, hidden), batch, hidden, 12))
        y = g.gelu(g.linear(g.normalized(x, hidden), hidden, 4 * hidden))
        x = g.node("Add", x, g.linear(y, 4 * hidden, hidden))
    first = g.node("Gather", g.normalized(x, hidden), g.constant(np.array(0, np.int64)), axis=1)
    return g.model(g.linear(first, hidden, 1000), _image(batch))


def convnext(batch: int) -> Model:
    """ConvNeXt-tiny: depthwise convolutions, and products with the channels as the last axis."""
    g, x, inputs = Graph(), "image", 3
    widths, depths = (96, 192, 384, 768), (3, 3, 9, 3)
    for stage, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        if stage:
            x = _normalized_channels(g, x, inputs)
        x = g.convolution(x, inputs, width, 2 if stage else 4, 2 if stage else 4)
        if not stage:
            x = _normalized_channels(g, x, width)
        for _ in range(depth):
            y = g.node("Transpose", g.convolution(x, width, width, 7, 1, width), perm=[0, 2, 3, 1])
            y = g.gelu(g.linear(g.normalized(y, width), width, 4 * width))
            y = g.node("Mul", g.linear(y, 4 * width, width), g.weight(width, scale=1))
            x = g.node("Add", x, g.node("Transpose", y, perm=[0, 3, 1, 2]))
        inputs = width
    x = g.node("Flatten", g.node("GlobalAveragePool", x), axis=1)
    return g.model(g.linear(g.normalized(x, inputs), inputs, 1000), _image(batch))


def _normalized_channels(g: Graph, x: str, width: int) -> str:
    last = g.normalized(g.node("Transpose", x, perm=[0, 2, 3, 1]), width)
    return g.node("Transpose", last, perm=[0, 3, 1, 2])


_EFFICIENTNET = (
    (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4), (6, 3, 1, 320, 1),
)  # fmt: skip
"""Expansion, window, stride of the first block, channels, and number of blocks."""


def efficientnet(batch: int) -> Model:
    """EfficientNet-b0: depthwise convolutions, and channels weighted by their means."""
    g, inputs = Graph(), 32
    x = g.swish(g.convolution("image", 3, inputs, 3, 2))
    for expansion, size, first, outputs, blocks in _EFFICIENTNET:
        for block in range(blocks):
            stride, wide = (1 if block else first), inputs * expansion
            y = x if expansion == 1 else g.swish(g.convolution(x, inputs, wide, 1))
            y = g.swish(g.convolution(y, wide, wide, size, stride, wide))
            few = max(1, inputs // 4)
            weights = g.convolution(g.node("GlobalAveragePool", y), wide, few, 1)
            weights = g.node("Sigmoid", g.convolution(g.swish(weights), few, wide, 1))
            y = g.convolution(g.node("Mul", y, weights), wide, outputs, 1)
            x = g.node("Add", x, y) if stride == 1 and inputs == outputs else y
            inputs = outputs
    x = g.node("GlobalAveragePool", g.swish(g.convolution(x, inputs, 1280, 1)))
    return g.model(g.linear(g.node("Flatten", x, axis=1), 1280, 1000), _image(batch))


def clip(batch: int) -> Model:
    """CLIP's model of text: twelve layers of 512 numbers at 77 places, with a causal mask."""
    g, hidden, length = Graph(), 512, 77
    x = g.node("Gather", g.weight(49408, hidden), "ids")
    x = g.node("Add", x, g.weight(length, hidden))
    mask = np.triu(np.full((length, length), np.finfo(np.float32).min, np.float32), 1)
    name = g.constant(mask[None, None])
    for _ in range(12):
        x = g.node("Add", x, g.attention(g.normalized(x, hidden), batch, hidden, 8, name))
        y = g.swish(g.linear(g.normalized(x, hidden), hidden, 4 * hidden), 1.702)
        x = g.node("Add", x, g.linear(y, 4 * hidden, hidden))
    ids = np.random.default_rng(1).integers(0, 49408, (batch, length))
    return g.model(g.normalized(x, hidden), {"ids": ids})


def resnet(batch: int) -> Model:
    """ResNet-50: convolutions with windows of 3 x 3 between ones of one element."""
    g, inputs = Graph(), 64
    x = g.node("Relu", g.convolution("image", 3, inputs, 7, 2))
    x = g.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for stage, depth in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(depth):
            stride = 2 if stage and not block else 1
            y = g.node("Relu", g.convolution(x, inputs, width, 1))
            y = g.node("Relu", g.convolution(y, width, width, 3, stride))
            y = g.convolution(y, width, 4 * width, 1)
            if not block:
                x = _shortcut(g, x, inputs, 4 * width, stride)
            x = g.node("Relu", g.node("Add", x, y))
            inputs = 4 * width
    x = g.node("Flatten", g.node("GlobalAveragePool", x), axis=1)
    return g.model(g.linear(x, inputs, 1000), _image(batch))


def _shortcut(g: Graph, x: str, inputs: int, outputs: int, stride: int) -> str:
    weight = g.weight(outputs, inputs, 1, 1, scale=math.sqrt(1.5 / inputs))
    return g.node("Conv", x, weight, g.weight(outputs), strides=[stride, stride])


MODELS: dict[str, Callable[[int], Model]] = {
    "ViT-B/16": vit, "ConvNeXt-tiny": convnext, "EfficientNet-b0": efficientnet,
    "CLIP text": clip, "ResNet-50": resnet,
}  # fmt: skip
"""Functions that make a model for a batch size, by title."""
