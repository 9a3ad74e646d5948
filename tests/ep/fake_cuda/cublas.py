"""A stand-in for cuBLAS over the one for CuPy: products of NumPy, as work of a stream."""

from __future__ import annotations

import ctypes

import numpy as np

from epprof_nb.ep import types

_TYPES = {0: np.float32, 1: np.float64, 2: np.float16, 14: types.small_float_dtypes().get(16)}
_SUMS = {68: np.float32, 70: np.float64, 77: np.float32}
_INVALID, _NO_WORKSPACE = 7, 3


class Cublas:
    """The functions that the provider calls. The real one allocates where a workspace is missing
    in a capture, which is refused here."""

    def __init__(self, module):
        self.module = module
        self.products = []  # batch, rows, columns, depth, workspace
        self.computes = []  # types to compute in
        self._stream = self._workspace = None

    def cublasSetStream_v2(self, handle, stream):  # noqa: N802 - cuBLAS's name
        self._stream, self._workspace = stream, None
        return 0

    def cublasSetWorkspace_v2(self, handle, workspace, nbytes):  # noqa: N802 - cuBLAS's name
        self._workspace = workspace
        return 0

    def cublasGemmStridedBatchedEx(  # noqa: N802 - cuBLAS's name and order
        self, handle, trans_a, trans_b, m, n, k,
        alpha, a, a_type, lda, a_step, b, b_type, ldb, b_step,
        beta, c, c_type, ldc, c_step, batch, compute, algorithm,
    ):  # fmt: skip
        assert self._stream == self.module.stream()
        if self._workspace is None and self.module.is_capturing():
            return _NO_WORKSPACE
        if lda < (k if trans_a else m) or ldb < (n if trans_b else k) or ldc < m:
            return _INVALID
        self.computes.append(compute)
        self.products.append((batch, n, m, k, self._workspace))
        left = _matrices(a, a_type, lda, a_step, (k, m) if trans_a else (m, k), batch)
        right = _matrices(b, b_type, ldb, b_step, (n, k) if trans_b else (k, n), batch)
        target = _matrices(c, c_type, ldc, c_step, (m, n), batch)
        kind = _SUMS[compute]

        def work(_):
            x = np.swapaxes(left, 1, 2) if trans_a else left
            y = np.swapaxes(right, 1, 2) if trans_b else right
            target[...] = np.matmul(x.astype(kind), y.astype(kind))

        self.module.launch(work, [a, b, c])
        return 0


def _matrices(pointer, kind, leading, step, shape, batch):
    """A batch of matrices by columns at an address."""
    rows, columns = shape
    dtype = np.dtype(_TYPES[kind])
    count = (batch - 1) * step + (columns - 1) * leading + rows
    raw = (ctypes.c_char * (count * dtype.itemsize)).from_address(pointer)
    strides = (step * dtype.itemsize, dtype.itemsize, leading * dtype.itemsize)
    return np.lib.stride_tricks.as_strided(
        np.frombuffer(raw, dtype), (batch, rows, columns), strides
    )
