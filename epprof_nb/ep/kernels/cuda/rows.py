"""Softmax, normalization and extremes of rows on CUDA devices, with one launch each.

With CuPy's functions, a softmax takes six launches and a layer normalization ten. Numbers are
computed in float32, or in float64 for float64.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.ep.kernels.cuda import types as cuda_types

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule

COMBINING = """
struct Sum { template <typename A> __device__ A operator()(A a, A b) { return a + b; } };
struct Max {  // NaN wins
  template <typename A> __device__ A operator()(A a, A b) { return a != a || a > b ? a : b; }
};

// Over the first lanes of a warp, a power of two; each lane gets the result.
template <typename A, typename Combine>
__device__ A over_lanes(A value, unsigned lanes, Combine combine) {
  for (unsigned half = lanes / 2; half; half /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffff, value, half));
  }
  return value;
}

template <typename A, typename Combine>
__device__ A over_block(A value, Combine combine) {
  __shared__ A parts[32];
  unsigned warps = (blockDim.x + 31) / 32;
  value = over_lanes(value, warps > 1 ? 32 : blockDim.x, combine);
  if (warps == 1) return value;
  __syncthreads();  // the parts of the call before have been read
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  return over_lanes(parts[threadIdx.x % warps], warps, combine);
}
"""

_SOFTMAX = """
extern "C" __global__ void softmax_rows(const T* x, T* y, long long n, long long step) {
  long long start = blockIdx.x / step * n * step + blockIdx.x % step;
  A largest = -__int_as_float(0x7f800000), sum = 0;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    largest = Max()(largest, A(wide(x[start + i * step])));
  }
  largest = over_block(largest, Max());
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    sum += exp(wide(x[start + i * step]) - largest);
  }
  sum = over_block(sum, Sum());
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    write(&y[start + i * step], exp(wide(x[start + i * step]) - largest) / sum);
  }
}
"""

_NORMALIZE = """
extern "C" __global__ void normalize_rows(const T* x, const T* scale, const T* bias, T* y, A* means,
                                          A* inverses, long long n, A epsilon) {
  x += blockIdx.x * n;
  y += blockIdx.x * n;
  A sum = 0, squares = 0;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) sum += wide(x[i]);
  A mean = over_block(sum, Sum()) / n, rest = 0;
  // Rounding of the mean of large numbers would become variance.
  for (long long i = threadIdx.x; i < n; i += blockDim.x) rest += wide(x[i]) - mean;
  mean += over_block(rest, Sum()) / n;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    A difference = wide(x[i]) - mean;
    squares += difference * difference;
  }
  A inverse = 1 / sqrt(over_block(squares, Sum()) / n + epsilon);
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    A value = (wide(x[i]) - mean) * inverse * wide(scale[i]);
    write(&y[i], bias ? value + wide(bias[i]) : value);
  }
  if (threadIdx.x == 0) {
    if (means) means[blockIdx.x] = mean;
    if (inverses) inverses[blockIdx.x] = inverse;
  }
}
"""

_EXTREME = """
extern "C" __global__ void extreme_of_rows(const T* x, long long* y, long long n, long long step,
                                           int smallest, int last) {
  __shared__ A values[256];
  __shared__ long long places[256];
  long long start = blockIdx.x / step * n * step + blockIdx.x % step, place = -1;
  A best = 0;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    A value = wide(x[start + i * step]);
    if (smallest) value = -value;
    if (value == value && (place < 0 || value > best || (last && value == best))) {
      best = value;
      place = i;
    }
  }
  values[threadIdx.x] = best;
  places[threadIdx.x] = place;
  for (unsigned half = blockDim.x / 2; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half || places[threadIdx.x + half] < 0) continue;
    A other = values[threadIdx.x + half];
    long long there = places[threadIdx.x + half];
    best = values[threadIdx.x];
    place = places[threadIdx.x];
    if (place < 0 || other > best || (other == best && (there > place) == (last != 0))) {
      values[threadIdx.x] = other;
      places[threadIdx.x] = there;
    }
  }
  if (threadIdx.x == 0) {
    A first = wide(x[start]);
    y[blockIdx.x] = first == first ? places[0] : 0;  // nothing is larger than NaN
  }
}
"""

_MAX_THREADS = 256


@cache
def _kernel(xp: ArrayModule, name: str, dtype: str) -> Any:  # noqa: ANN401
    code = {
        "softmax_rows": _SOFTMAX, "normalize_rows": _NORMALIZE, "extreme_of_rows": _EXTREME,
    }[name]  # fmt: skip
    return xp.RawKernel(cuda_types.preamble(dtype) + COMBINING + code, name)


def threads(n: int) -> int:
    """Return the number of threads for a row: a power of two, for about four elements each."""
    return min(max(1 << ((n + 3) // 4 - 1).bit_length(), 32), _MAX_THREADS)


def softmax(xp: ArrayModule, x: Array, axis: int, out: Array) -> None:
    """Write the softmax along an axis of a non-empty array."""
    n, step = x.shape[axis], math.prod(x.shape[axis + 1 :])
    rows = x.size // n
    kernel = _kernel(xp, "softmax_rows", x.dtype.name)
    _native.ep_launch(kernel, (rows,), (threads(n),), (x, out, np.int64(n), np.int64(step)))


def place_of_extreme(xp: ArrayModule, x: Array, axis: int, *, smallest: bool, last: bool) -> Array:
    """Return the index of the largest or smallest element along an axis of a non-empty array.

    NaN is chosen only if it is the first element.
    """
    n, step = x.shape[axis], math.prod(x.shape[axis + 1 :])
    places = xp.empty(x.shape[:axis] + x.shape[axis + 1 :], np.int64)
    _native.ep_launch(
        _kernel(xp, "extreme_of_rows", x.dtype.name), (x.size // n,), (threads(n),),
        (x, places, np.int64(n), np.int64(step), np.int32(smallest), np.int32(last)),
    )  # fmt: skip
    return places


def normalize(  # noqa: PLR0917 - as many as the operator has
    xp: ArrayModule,
    x: Array, scale: Array, bias: Array | None,
    epsilon: float,
    out: Array, means: Array | None, inverses: Array | None,
) -> None:  # fmt: skip
    """Write rows with mean 0 and variance 1, scaled and shifted.

    Parameters
    ----------
    xp
        CuPy.
    x
        Array with elements; its rows are as long as `scale`.
    scale, bias
        Factor and summand of each element of a row, with the dtype of `x`.
    epsilon
        Added to the variances.
    out
        Gets the result.
    means, inverses
        Get the mean and the inverse deviation of each row: float32, or float64 for float64.
    """
    n = scale.size
    wide = np.float64 if x.dtype == np.float64 else np.float32
    nothing = np.uint64(0)
    _native.ep_launch(
        _kernel(xp, "normalize_rows", x.dtype.name), (x.size // n,), (threads(n),),
        (
            x, scale, nothing if bias is None else bias, out,
            nothing if means is None else means, nothing if inverses is None else inverses,
            np.int64(n), wide(epsilon),
        ),
    )  # fmt: skip
