"""Ten ops for comparisons, on the host device or a CUDA device; one of them can be made slower."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

import epprof_nb
from epprof_nb import host

if TYPE_CHECKING:
    from collections.abc import Callable

OPS, PLANTED = 10, 5
Step: TypeAlias = "Callable[[float], None]"
"""Runs all ops once, the planted one slower by a share (0.05: 5 %)."""

_HOST_STEPS = 40
_CUDA_SHARES = (20, 6, 12, 8, 10, 5, 15, 9, 4, 11)
"""Percent of the device time; the planted op has 5."""
_CUDA_STEPS = 3_000
"""Steps of a kernel for one percent: about 20 us on an H200."""

_CUDA_SOURCE = """
extern "C" __global__ void k{number}(float* values, int steps) {{
  float value = values[threadIdx.x];
  for (int step = 0; step < steps; ++step) value = fmaf(value, 0.999f, 0.001f);
  values[threadIdx.x] = value;
}}
"""


def on_host(*, steps: int = _HOST_STEPS, all_ops: bool = False) -> Step:
    """Return ops of equal length on the host device; with `all_ops`, all of them become slower."""
    array = host.empty((4096,))
    host.launch(lambda values: values.fill(1), array)

    def work(values, steps):
        for _ in range(steps):
            np.sqrt(values, out=values)

    def step(planted):
        for number in range(OPS):
            slower = planted if all_ops or number == PLANTED else 0
            planned = round(steps * (1 + slower))
            with epprof_nb.op(f"op {number}"):
                host.launch(lambda values, n=planned: work(values, n), array, name=f"k{number}")
        host.synchronize()

    return step


def on_cuda() -> Step:
    """Return ops of 80 to 400 us on the current CUDA device."""
    import cupy

    values = cupy.ones(256, cupy.float32)
    kernels = [
        cupy.RawKernel(_CUDA_SOURCE.format(number=number), f"k{number}") for number in range(OPS)
    ]
    # One block per multiprocessor: no kernel waits for another one's blocks.
    blocks = (cupy.cuda.Device().attributes["MultiProcessorCount"],)

    def step(planted):
        for number, kernel in enumerate(kernels):
            slower = 1 + planted * (number == PLANTED)
            steps = np.int32(round(_CUDA_STEPS * _CUDA_SHARES[number] * slower))
            with epprof_nb.op(f"op {number}"):
                kernel(blocks, (256,), (values, steps))
        cupy.cuda.get_current_stream().synchronize()

    return step
