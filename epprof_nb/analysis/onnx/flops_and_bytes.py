"""FLOPs and least bytes of ONNX operators, from the types and shapes of their inputs and outputs.

A multiplication and an addition are two FLOPs; any elementwise function is one FLOP per element.
The least bytes are the bytes to read every input and write every output once.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TENSOR = re.compile(r"(\w+)\[((?:(?:0|[1-9][0-9]*)(?:,(?=[0-9])|(?=\])))*)\]")
_MAX_ELEMENTS = 2**52
"""Floats are exact for integers up to this limit; shapes of a damaged file may exceed it."""

_ITEM_BYTES = {
    "float": 4, "float16": 2, "bfloat16": 2, "double": 8, "int8": 1, "uint8": 1, "int16": 2,
    "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8, "bool": 1, "float8e4m3fn": 1,
    "float8e4m3fnuz": 1, "float8e5m2": 1, "float8e5m2fnuz": 1, "int4": 0.5, "uint4": 0.5,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tensor:
    """Element type, as ONNX Runtime names it, and shape of a tensor."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> float:
        """Size in bytes."""
        return self.elements * _ITEM_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Cost:
    """FLOPs and least bytes of one execution, and the element type of its arithmetic."""

    flops: float
    least_bytes: float
    dtype: str


def parse_shapes(text: str | None) -> list[Tensor] | None:
    """Parse the shapes of a node, as ``float[8,256], float[256,256]``.

    None if one of them has another form or type, such as a string or a sequence.

    Examples
    --------
    >>> parse_shapes("float[8,256], int64[]")
    [Tensor(dtype='float', shape=(8, 256)), Tensor(dtype='int64', shape=())]
    """
    tensors = []
    for part in (text or "").split(", ") if text else ():
        match = _TENSOR.fullmatch(part)
        if match is None or match[1] not in _ITEM_BYTES or len(match[2]) > 200:
            return None
        tensor = Tensor(match[1], tuple(int(size) for size in match[2].split(",") if size))
        if tensor.elements > _MAX_ELEMENTS:
            return None
        tensors.append(tensor)
    return tensors


def op_cost(op_type: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Cost | None:
    """Return the cost of one execution of an operator; None if it is unknown.

    Examples
    --------
    >>> a, b = parse_shapes("float[8,256], float[256,64]")
    >>> op_cost("MatMul", [a, b], parse_shapes("float[8,64]")).flops
    262144.0
    """
    formula = _FORMULAS.get(op_type)
    if formula is None or not inputs or not outputs:
        return None
    try:
        flops = float(formula(inputs, outputs))
    except (IndexError, ValueError, ZeroDivisionError):
        return None  # fewer inputs or dimensions than the operator has
    read = inputs
    if op_type in _READS_AS_MUCH_AS_IT_WRITES:
        # The rest of the first input is not read.
        read = [outputs[0], *inputs[1:]]
    moved = sum(tensor.nbytes for tensor in (*read, *outputs))
    return Cost(flops, moved, inputs[0].dtype)


def _matmul(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> float:
    return 2 * outputs[0].elements * inputs[0].shape[-1]


def _gemm(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> float:
    rows, _ = outputs[0].shape[-2:]
    # The sums run over the other dimension, whether or not the first matrix is transposed.
    inner = inputs[0].elements / rows
    return outputs[0].elements * (2 * inner + (len(inputs) > 2))


def _convolution(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> float:
    # The weights are (outputs, inputs of a group, kernel...).
    per_element = 2 * math.prod(inputs[1].shape[1:])
    return outputs[0].elements * (per_element + (len(inputs) > 2))


def _transposed_convolution(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> float:
    # The weights are (inputs, outputs of a group, kernel...).
    products = 2 * inputs[0].elements * math.prod(inputs[1].shape[1:])
    return products + outputs[0].elements * (len(inputs) > 2)


def _attention(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> float:
    if len(inputs[1].shape) == 2:  # one matrix of weights for queries, keys and values
        batch, length, width = inputs[0].shape
        projected = inputs[1].shape[1]
        heads = batch * length * length * 4 * outputs[0].shape[-1]
        return 2 * batch * length * width * projected + heads
    # Keys of earlier calls are in the outputs.
    keys = max(t.shape[-2] for t in (inputs[1], *outputs[1:3]))
    return 2 * keys * (inputs[0].elements + outputs[0].elements)


def _per_output(flops: int) -> Callable[[Sequence[Tensor], Sequence[Tensor]], float]:
    return lambda _, outputs: flops * outputs[0].elements


def _per_input(flops: int) -> Callable[[Sequence[Tensor], Sequence[Tensor]], float]:
    return lambda inputs, _: flops * inputs[0].elements


_ELEMENTWISE = (
    "Abs", "Add", "BiasGelu", "Ceil", "Clip", "Cos", "Div", "Elu", "Equal", "Erf", "Exp",
    "FastGelu", "Floor", "Gelu", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish",
    "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Min", "Mish", "Mod", "Mul", "Neg", "Not",
    "Pow", "PRelu", "QuickGelu", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin",
    "Softplus", "Sqrt", "Sub", "Tanh",
)  # fmt: skip
_REDUCTIONS = (
    "ArgMax", "ArgMin", "AveragePool", "CumSum", "GlobalAveragePool", "GlobalMaxPool", "MaxPool",
    "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
_MOVES = (
    "Cast", "Concat", "Expand", "Gather", "GatherElements", "GatherND", "Identity",
    "MemcpyFromHost", "MemcpyToHost", "Pad", "Slice", "Split", "Tile", "Transpose", "Where",
)  # fmt: skip
_READS_AS_MUCH_AS_IT_WRITES = ("Gather", "GatherElements", "GatherND", "Slice")

_FORMULAS: dict[str, Callable[[Sequence[Tensor], Sequence[Tensor]], float]] = {
    "MatMul": _matmul,
    "Gemm": _gemm,
    "FusedGemm": _gemm,
    "Conv": _convolution,
    "FusedConv": _convolution,
    "ConvTranspose": _transposed_convolution,
    "Attention": _attention,
    "MultiHeadAttention": _attention,
    "GroupQueryAttention": _attention,
    # Mean, difference, square, sum, product, scale and bias.
    **dict.fromkeys(("LayerNormalization", "GroupNormalization", "GroupNorm"), _per_input(7)),
    "InstanceNormalization": _per_input(7),
    "SkipLayerNormalization": _per_input(8),
    "RMSNormalization": _per_input(4),
    "SimplifiedLayerNormalization": _per_input(4),
    "SkipSimplifiedLayerNormalization": _per_input(5),
    "BatchNormalization": _per_output(2),
    # Maximum, difference, exponential, sum and quotient.
    **dict.fromkeys(("Softmax", "LogSoftmax"), _per_input(5)),
    **dict.fromkeys(_ELEMENTWISE, _per_output(1)),
    **dict.fromkeys(_REDUCTIONS, _per_input(1)),
    **dict.fromkeys(_MOVES, _per_output(0)),
}
