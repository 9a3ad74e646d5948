"""Inputs and outputs on a CUDA device."""

from __future__ import annotations

import numpy as np


def bound(session, x, output="t2"):
    """A binding of `x` and the output that stays on the device, as a CUDA graph needs it.

    The second value is what it binds: keep it as long as the binding.
    """
    from onnxruntime import OrtValue

    binding = session.io_binding()
    given = OrtValue.ortvalue_from_numpy(x, "cuda", 0)
    taken = OrtValue.ortvalue_from_shape_and_type(x.shape, np.float32, "cuda", 0)
    binding.bind_ortvalue_input("x", given)
    binding.bind_ortvalue_output(output, taken)
    return binding, (given, taken)
