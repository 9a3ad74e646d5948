"""Operators of ``com.microsoft`` into which ONNX Runtime's optimizer fuses others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.ep.kernel import Array, Attributes, Context, builtin
from epprof_nb.ep.kernels.images.convolution import convolve
from epprof_nb.ep.kernels.layers.normalization import (
    grouped,
    root_mean_square,
    standardize,
)
from epprof_nb.ep.kernels.math.activation import gelu, gelu_tanh, sigmoid, softplus
from epprof_nb.ep.kernels.math.linear import gemm_matrices
from epprof_nb.ep.kernels.shared.axes import nonnegative
from epprof_nb.ep.kernels.shared.checks import expect_shape
from epprof_nb.ep.kernels.shared.optional_outputs import write_optional
from epprof_nb.ep.kernels.shared.precision import at_least_float32
from epprof_nb.ep.products import cublaslt, products

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from epprof_nb.ep.kernel import ArrayModule
    from epprof_nb.ep.kernel_limits import Limits, StaticNode

_CONTRIB = "com.microsoft"


@builtin("Gelu", domain=_CONTRIB, since=1)
def gelu_(ctx: Context, x: Array) -> None:
    """Gelu by the error function."""
    ctx.out(x.shape)[...] = gelu(ctx.xp, at_least_float32(x))


@builtin("BiasGelu", domain=_CONTRIB, since=1)
def bias_gelu(ctx: Context, x: Array, bias: Array) -> None:
    """Gelu of a sum."""
    expect_shape("B", bias, x.shape[-1:])
    wide = at_least_float32(x) + at_least_float32(bias)
    ctx.out(wide.shape)[...] = gelu(ctx.xp, wide)


@builtin("FastGelu", domain=_CONTRIB, since=1)
def fast_gelu(ctx: Context, x: Array, bias: Array | None = None) -> None:
    """Gelu approximated by tanh, of a sum."""
    expect_shape("bias", bias, x.shape[-1:])
    wide = at_least_float32(x)
    ctx.out(x.shape)[...] = gelu_tanh(ctx.xp, wide if bias is None else wide + bias)


@builtin("QuickGelu", domain=_CONTRIB, since=1)
def quick_gelu(ctx: Context, x: Array) -> None:
    """Gelu approximated by the logistic function."""
    wide = at_least_float32(x)
    ctx.out(x.shape)[...] = wide * sigmoid(ctx.xp, wide * wide.dtype.type(ctx.attrs["alpha"]))


_EPSILON: Limits = {"epsilon is negative": lambda node: node.attrs["epsilon"] < 0}


@builtin("SkipLayerNormalization", domain=_CONTRIB, since=1, limits=_EPSILON)
def skip_layer_normalization(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    x: Array, skip: Array, gamma: Array,
    beta: Array | None = None, bias: Array | None = None,
) -> None:  # fmt: skip
    """Mean 0 and variance 1 of a sum over the last axis, then scaled and shifted."""
    total = _skipped(x, skip, gamma, beta, bias)
    y, mean, inverse = standardize(ctx.xp, total, (x.ndim - 1,), ctx.attrs["epsilon"])
    y *= gamma
    if beta is not None:
        y += beta
    ctx.out(x.shape, index=0)[...] = y
    for index, value in ((1, mean), (2, inverse), (3, total)):
        write_optional(ctx, index, value)


@builtin("SkipSimplifiedLayerNormalization", domain=_CONTRIB, since=1, limits=_EPSILON)
def skip_simplified_layer_normalization(
    ctx: Context, x: Array, skip: Array, gamma: Array, bias: Array | None = None
) -> None:
    """Mean square 1 of a sum over the last axis, then scaled."""
    total = _skipped(x, skip, gamma, None, bias)
    y, inverse = root_mean_square(ctx, total, (x.ndim - 1,))
    ctx.out(x.shape, index=0)[...] = y * gamma
    for index, value in ((2, inverse), (3, total)):
        write_optional(ctx, index, value)


def _skipped(x: Array, skip: Array, gamma: Array, beta: Array | None, bias: Array | None) -> Array:
    for name, given in (("gamma", gamma), ("beta", beta), ("bias", bias)):
        expect_shape(name, given, x.shape[-1:])
    for given in (x, skip):
        if given.ndim not in (2, 3) or given.shape[-2:] != x.shape[-2:]:
            raise ValueError(f"the shapes {x.shape} and {skip.shape} do not fit")
    total = at_least_float32(x) + at_least_float32(skip)
    if bias is not None:
        total += bias
    return total


@builtin("FusedMatMul", domain=_CONTRIB, since=1)
def fused_matmul(ctx: Context, a: Array, b: Array) -> None:
    """A multiple of a product of matrices, with axes moved before."""
    xp, attrs = ctx.xp, ctx.attrs
    a = _turned(xp, a, batch=attrs["transBatchA"], matrix=attrs["transA"])
    b = _turned(xp, b, batch=attrs["transBatchB"], matrix=attrs["transB"])
    out = ctx.out(products.product_shape(a, b))
    if xp is not np and cublaslt.multiply(a, b, out, alpha=attrs["alpha"]):
        ctx.repeat_launches()
        return
    products.matmul(a, b, out=out)
    if attrs["alpha"] != 1:
        out *= out.dtype.type(attrs["alpha"])


def _turned(xp: ArrayModule, x: Array, *, batch: int, matrix: int) -> Array:
    if batch:  # the first axis becomes the rows
        x = xp.moveaxis(x, 0, -2)
    return xp.swapaxes(x, -1, -2) if matrix and x.ndim > 1 else x


def activate(xp: ArrayModule, attrs: Attributes, y: Array) -> Array:
    """Return the result of a fused operator's activation for `y`."""
    name = attrs["activation"]
    if "activation_params" in attrs:
        parameters = attrs["activation_params"]
    else:
        parameters = [attrs.get(f"activation_{k}", 0.0) for k in ("alpha", "beta", "gamma")]
    a, b = (*parameters, 0.0, 0.0)[:2]
    if name == "Relu":
        return xp.maximum(y, 0)
    if name == "LeakyRelu":
        return xp.where(y < 0, y * y.dtype.type(a), y)
    if name == "Clip":
        return xp.clip(y, a, b)
    if name == "HardSigmoid":
        return xp.clip(y * y.dtype.type(a) + y.dtype.type(b), 0, 1)
    if name == "Softplus":
        return softplus(xp, y)
    return sigmoid(xp, y) if name == "Sigmoid" else xp.tanh(y)


_PARAMETERS = {
    "Clip": 2, "HardSigmoid": 2, "LeakyRelu": 1, "Relu": 0, "Sigmoid": 0, "Softplus": 0, "Tanh": 0,
}  # fmt: skip
"""Number of parameters of each activation."""


def _activations(names: Collection[str], given: Callable[[StaticNode], int]) -> Limits:
    """Return the limits of an operator that supports some activations.

    Parameters
    ----------
    names
        The activations.
    given
        Returns the number of parameters that a node gives.
    """

    def lacks_parameters(node: StaticNode) -> bool:
        wanted = _PARAMETERS[node.attrs["activation"]]
        return wanted > 0 and given(node) != wanted

    return {
        f"activation is not one of {', '.join(sorted(names))}": lambda node: (
            node.attrs.get("activation") not in names
        ),
        "it does not have the parameters of its activation": lacks_parameters,
    }


def _named_parameters(node: StaticNode) -> int:
    """Return the number of parameters before the first one that FusedGemm omits."""
    given = [f"activation_{name}" in node.attrs for name in ("alpha", "beta")]
    if node.attrs["activation"] == "LeakyRelu":
        return int(given[0])
    return sum(given)


@builtin(
    "FusedConv", domain=_CONTRIB, since=1,
    limits=_activations(
        _PARAMETERS.keys() - {"Softplus"},
        lambda node: len(node.attrs.get("activation_params") or ()),
    ),
)  # fmt: skip
def fused_conv(
    ctx: Context, x: Array, weight: Array, bias: Array | None = None, added: Array | None = None
) -> None:
    """Convolution, then a sum and an activation."""
    y = convolve(ctx, at_least_float32(x), at_least_float32(weight), bias)
    if added is not None:
        y += added
    ctx.out(y.shape)[...] = activate(ctx.xp, ctx.attrs, y)


@builtin(
    "FusedGemm", domain=_CONTRIB, since=1, types="float16 float32 float64",
    limits=_activations(_PARAMETERS.keys() - {"Clip"}, _named_parameters),
)  # fmt: skip
def fused_gemm(ctx: Context, a: Array, b: Array, c: Array | None = None) -> None:
    """Gemm, then an activation."""
    a, b = gemm_matrices(ctx.attrs, a, b, c)
    y = products.matmul(at_least_float32(a), at_least_float32(b))
    y *= y.dtype.type(ctx.attrs["alpha"])
    if c is not None and ctx.attrs["beta"]:
        y += c * y.dtype.type(ctx.attrs["beta"])
    ctx.out(y.shape)[...] = activate(ctx.xp, ctx.attrs, y)


_PACKING: Limits = {
    "bits is not 2, 4 or 8": lambda node: node.attrs.get("bits") not in (2, 4, 8),
    "weight_prepacked is set": lambda node: bool(node.attrs.get("weight_prepacked")),
}


@builtin("MatMulNBits", domain=_CONTRIB, since=1, limits=_PACKING)
def matmul_nbits(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    a: Array, b: Array, scales: Array,
    zero_points: Array | None = None, group: Array | None = None, bias: Array | None = None,
) -> None:  # fmt: skip
    """Product with a matrix of 2, 4 or 8 bits per weight, with one scale per block of a row."""
    xp, attrs = ctx.xp, ctx.attrs
    n, k, bits, block = attrs["N"], attrs["K"], attrs["bits"], attrs["block_size"]
    blocks = -(-k // block)
    expect_shape("B", b.reshape(n, -1), (n, blocks * (block * bits // 8)))
    weights = unpack(xp, b.reshape(n, -1), bits)[:, : blocks * block].astype(np.float32)
    if zero_points is None:
        zeros = xp.full((n, blocks), 2 ** (bits - 1), np.float32)
    elif zero_points.dtype == np.uint8:
        zeros = unpack(xp, zero_points.reshape(n, -1), bits)[:, :blocks].astype(np.float32)
    else:
        zeros = zero_points.reshape(n, blocks).astype(np.float32)
    factors = scales.reshape(n, blocks).astype(np.float32)
    which = xp.arange(k) // block if group is None else group[:k]
    weights = (weights[:, :k] - zeros[:, which]) * factors[:, which]
    y = products.matmul(at_least_float32(a), weights.T)
    ctx.out((*a.shape[:-1], n))[...] = y if bias is None else y + bias


_BLOCKS: Limits = {
    "bits is not 4 or 8": lambda node: node.attrs["bits"] not in (4, 8),
    "block_size is not a power of 2 from 16 on": lambda node: (
        node.attrs["block_size"] < 16 or node.attrs["block_size"].bit_count() != 1
    ),
}


@builtin("GatherBlockQuantized", domain=_CONTRIB, since=1, types={"T1": "uint8"}, limits=_BLOCKS)
def gather_block_quantized(
    ctx: Context, data: Array, indices: Array, scales: Array, zero_points: Array | None = None
) -> None:
    """Rows of a matrix of 4 or 8 bits per number, with one scale per block."""
    xp, attrs = ctx.xp, ctx.attrs
    gather, quantize = (nonnegative(attrs[f"{s}_axis"], data.ndim) for s in ("gather", "quantize"))
    if gather or quantize != data.ndim - 1:
        raise ValueError("gather_axis is not the first axis, or quantize_axis not the last one")
    bits, block, width = attrs["bits"], attrs["block_size"], data.shape[-1] * 8 // attrs["bits"]
    blocks = -(-width // block)
    expect_shape("scales", scales, (*data.shape[:-1], blocks))
    if xp is np and indices.size and not -len(data) <= indices.min() <= indices.max() < len(data):
        raise IndexError(f"one of the indices is outside of the {len(data)} rows of the data")
    numbers = unpack(xp, data[indices], bits).astype(np.float32)
    if zero_points is None:
        zeros = np.float32(2 ** (bits - 1))
    else:
        expect_shape("zero_points", zero_points, (*data.shape[:-1], -(-blocks * bits // 8)))
        zeros = xp.repeat(unpack(xp, zero_points[indices], bits)[..., :blocks], block, axis=-1)
        zeros = zeros[..., :width]
    factors = xp.repeat(scales[indices].astype(np.float32), block, axis=-1)[..., :width]
    ctx.out(numbers.shape)[...] = (numbers - zeros) * factors


@builtin("GroupNorm", domain=_CONTRIB, since=1)
def group_norm(ctx: Context, x: Array, gamma: Array, beta: Array) -> None:
    """Mean 0 and variance 1 of groups of channels, each channel scaled and shifted, then SiLU."""
    xp, attrs = ctx.xp, ctx.attrs
    axis = -1 if attrs["channels_last"] else 1
    shape = [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]
    found = grouped(ctx, xp.moveaxis(x, axis, 1), attrs["groups"])
    y = xp.moveaxis(found, 1, axis) * gamma.reshape(shape) + beta.reshape(shape)
    ctx.out(x.shape)[...] = y * sigmoid(xp, y) if attrs["activation"] else y


def unpack(xp: ArrayModule, packed: Array, bits: int) -> Array:
    """Return the numbers that are packed into bytes, the lowest bits first.

    Parameters
    ----------
    xp
        Array module.
    packed
        uint8 array of shape (..., bytes).
    bits
        2, 4 or 8.

    Returns
    -------
    numbers
        uint8 array of shape (..., bytes * 8 / bits).
    """
    shifts = xp.arange(0, 8, bits, dtype=np.uint8)
    parts = (packed[..., None] >> shifts) & np.uint8(2**bits - 1)
    return parts.reshape(*packed.shape[:-1], packed.shape[-1] * 8 // bits)
