"""Attention weights on CUDA devices: bias, mask and softmax of the scores in one launch."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.ep.kernels.cuda import rows as cuda_rows
from epprof_nb.ep.kernels.cuda import types as cuda_types

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule

_CODE = """
struct Row {
  const T *scores, *bias;
  const bool* mask;
  long long bias_step, mask_step;
  __device__ A operator[](long long i) const {
    A score = wide(scores[i]);
    if (bias) score += wide(bias[i * bias_step]);
    return mask && !mask[i * mask_step] ? -__int_as_float(0x7f800000) : score;
  }
};

extern "C" __global__ void attention_weights(
    T* x, const T* bias, const bool* mask, const T* sink, long long n, long long rows,
    long long heads, long long b0, long long b1, long long b2, long long b3, long long m0,
    long long m1, long long m2, long long m3) {
  long long row = blockIdx.x % rows, head = blockIdx.x / rows % heads;
  long long batch = blockIdx.x / rows / heads;
  x += blockIdx.x * n;
  Row scores{x, bias ? bias + batch * b0 + head * b1 + row * b2 : bias,
             mask ? mask + batch * m0 + head * m1 + row * m2 : mask, b3, m3};
  A largest = -__int_as_float(0x7f800000), sum = 0;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) largest = Max()(largest, scores[i]);
  largest = over_block(largest, Max());
  if (sink) largest = Max()(largest, A(wide(sink[head])));
  if (!(largest - largest == 0)) largest = 0;  // not finite
  for (long long i = threadIdx.x; i < n; i += blockDim.x) sum += exp(scores[i] - largest);
  sum = over_block(sum, Sum());
  if (sink) sum += exp(wide(sink[head]) - largest);
  if (sum == 0) sum = 1;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    write(&x[i], exp(scores[i] - largest) / sum);
  }
}
"""


@cache
def _kernel(xp: ArrayModule, dtype: str) -> Any:  # noqa: ANN401
    code = cuda_types.preamble(dtype) + cuda_rows.COMBINING + _CODE
    return xp.RawKernel(code, "attention_weights")


def write_weights(
    xp: ArrayModule,
    scores: Array,
    bias: Array | None,
    mask: Array | None,
    sink: Array | None,
) -> bool:
    """Replace scores by weights; return False if the arrays are not supported.

    Parameters
    ----------
    xp
        CuPy.
    scores
        Contiguous array of shape (batch, heads, rows, columns), with elements: float32 or float64.
    bias
        Numbers added to the scores, broadcast to their shape.
    mask
        Booleans, likewise: False excludes a column. A row without columns gives zeros.
    sink
        One score per head, which is part of the softmax but not of a column.

    Raises
    ------
    ValueError
        If the shapes do not broadcast to the shape of the scores.
    """
    dtype, (_, heads, rows, columns) = scores.dtype, scores.shape
    if any(x is not None and x.dtype != dtype for x in (bias, sink)):
        return False
    if sink is not None and sink.size != heads:
        return False
    if mask is not None and mask.dtype != bool:
        return False
    bias, mask, sink = (None if x is None else xp.ascontiguousarray(x) for x in (bias, mask, sink))
    nothing = np.uint64(0)
    _native.ep_launch(
        _kernel(xp, dtype.name), (scores.size // columns,), (cuda_rows.threads(columns),),
        (
            scores, nothing if bias is None else bias, nothing if mask is None else mask,
            nothing if sink is None else sink,
            *map(np.int64, (columns, rows, heads)),
            *_steps(bias, scores.shape), *_steps(mask, scores.shape),
        ),
    )  # fmt: skip
    return True


def _steps(x: Array | None, shape: tuple[int, ...]) -> list[np.int64]:
    """Return elements from one index to the next along each axis of the broadcast array."""
    if x is None:
        return [np.int64(0)] * len(shape)
    missing = len(shape) - x.ndim
    if missing < 0 or any(n not in {1, m} for n, m in zip(x.shape, shape[missing:], strict=True)):
        raise ValueError(f"an array of shape {x.shape} does not broadcast to {shape}")
    steps = [
        np.int64(0 if size == 1 else stride // x.itemsize)
        for size, stride in zip(x.shape, x.strides, strict=True)
    ]
    return [np.int64(0)] * missing + steps
