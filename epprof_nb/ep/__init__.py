"""Kernels in Python: an execution provider for ONNX Runtime whose kernels are Python functions.

A kernel is a function that reads its inputs as NumPy arrays and writes its outputs in place. It
runs inside a session of the stock ``onnxruntime`` wheel::

    import onnxruntime as ort
    from epprof_nb import ep

    @ep.kernel("Softplus")
    def softplus(ctx, x):
        ctx.xp.logaddexp(x, 0, out=ctx.out(x.shape, x.dtype))

    session = ort.InferenceSession(
        "model.onnx", providers=[ep.provider("host", only=["Softplus"]), "CPUExecutionProvider"]
    )

`kernel` defines a kernel. `provider` returns an entry of a session's provider list, and `session`
is a short form. `verify` compares a model's nodes with ONNX Runtime's CPU provider. `parity`
compares the operators of all providers. `matmul` multiplies matrices in a way that a CUDA graph can
capture, and `dlpack` shares a tensor with another library. As in other packages of plugin
providers, programs that register the library by hand need `get_library_path` and `get_ep_name`.
"""

from __future__ import annotations

from epprof_nb.ep.dlpack import dlpack
from epprof_nb.ep.kernel import kernel
from epprof_nb.ep.parity import parity
from epprof_nb.ep.products.products import matmul
from epprof_nb.ep.provider import provider, session
from epprof_nb.ep.registration import get_ep_name, get_ep_names, get_library_path
from epprof_nb.ep.verify import verify

__all__ = [
    "dlpack", "get_ep_name", "get_ep_names", "get_library_path", "kernel", "matmul", "parity",
    "provider", "session", "verify",
]  # fmt: skip
