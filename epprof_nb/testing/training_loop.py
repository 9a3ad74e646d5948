"""The training loop of synthetic profiles: its source, ops and launches."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = """\
model, optimizer = build(layers=4, width=1024)
batches = load("train", batch_size=64)
losses = []
for x, y in batches:
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad()
    with epprof_nb.op("forward"):
        logits = model(x)
        loss = cross_entropy(logits, y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"mean loss {sum(losses) / len(losses):.4f}")
"""
"""The cell; `Step` models its loop line by line."""

_LAYERS = 4

_GEMM = "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_kernel"
_ATTENTION = (
    "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, "
    "cutlass::half_t>, true, false, false>(flash::Flash_fwd_params)"
)
_ATTENTION_BACKWARD = (
    "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64, 64, 128,"
    " 8, 4, 4, 4, false, false, cutlass::half_t>>(flash::Flash_bwd_params)"
)
_NORM = (
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float>(int, "
    "float, c10::Half const*, c10::Half const*, c10::Half const*, float*, float*, c10::Half*)"
)
_GELU = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl, "
    "at::detail::Array<char*, 2>>(int, at::native::GeluCUDAKernelImpl, "
    "at::detail::Array<char*, 2>)"
)
_ADD = (
    "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::Half>, "
    "at::detail::Array<char*, 3>>(int, at::native::CUDAFunctor_add<c10::Half>, "
    "at::detail::Array<char*, 3>)"
)
_SOFTMAX = (
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>"
    "(float*, float const*, int, int, int, bool const*, int, bool)"
)
_REDUCE = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
    "at::native::MeanOps<float, float, float, float>, unsigned int, float, 4>>"
    "(at::native::ReduceOp<float>)"
)
_ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<"
    "at::native::(anonymous namespace)::TensorListMetadata<4>, "
    "at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4>>"
)


class Step:
    """One step of the loop: its ops in preorder, and their launches."""

    def __init__(self, streams: int) -> None:
        self.ops: list[dict[str, Any]] = []
        self.launches: list[dict[str, Any]] = []
        self._open: list[int] = []
        with self.op("x, y = x.to(device), y.to(device)", 5):
            self.launch("memcpy", "memcpy HtoD", 21_000, stream=1 % streams, size=786_432)
            self.launch("memcpy", "memcpy HtoD", 3_000, stream=1 % streams, size=512)
        with self.op("optimizer.zero_grad()", 6):
            self.launch("memset", "memset", 9_000, size=12_582_912)
        with self.op('with epprof_nb.op("forward"):', 7), self.op("forward"):
            with self.op("logits = model(x)", 8):
                for layer in range(_LAYERS):
                    self._forward(layer)
            with self.op("loss = cross_entropy(logits, y)", 9):
                self.launch("kernel", _SOFTMAX, 7_000, grid=64, block=128)
                self.launch("kernel", _REDUCE, 4_000)
        with self.op("loss.backward()", 10):
            for _ in range(_LAYERS):
                self._backward(2 % streams)
        with self.op("optimizer.step()", 11):
            for i in range(3 * _LAYERS):
                self.launch("kernel", _ADAM, 18_000, stream=i % streams, grid=320, block=512)
        with self.op("losses.append(loss.item())", 12):
            self.launch("memcpy", "memcpy DtoH", 1_500, size=4)
            self.launch("synchronization", "context_synchronize", 0, stream=MISSING)

    @contextmanager
    def op(self, name: str, line: int = MISSING, args: str | None = None) -> Iterator[None]:
        """Add an op. Ops and launches added in the ``with`` block are its children."""
        parent = self._open[-1] if self._open else MISSING
        op = {"name": name, "line": line, "args": args, "parent": parent, "depth": len(self._open)}
        self._open.append(len(self.ops))
        self.ops.append(op)
        op["first"] = len(self.launches)
        yield
        op["last"] = len(self.launches) - 1
        self._open.pop()

    def launch(self, kind: str, name: str, duration_ns: int, **details: int) -> None:
        """Add an activity launched by the open op; `duration_ns` is its typical duration."""
        self.launches.append(
            {"kind": kind, "name": name, "duration_ns": duration_ns, "op": self._open[-1]} | details
        )

    def _forward(self, layer: int) -> None:
        with self.op("attention", args=f'{{"layer": {layer}}}'):
            self.launch("kernel", _NORM, 6_000, grid=64, block=128)
            self.launch("kernel", _GEMM, 38_000, grid=132, block=384)
            self.launch("kernel", _ATTENTION, 52_000, grid=512, block=128)
            self.launch("kernel", _GEMM, 14_000, grid=132, block=384)
            self.launch("kernel", _ADD, 5_000, grid=128, block=128)
        with self.op("mlp", args=f'{{"layer": {layer}}}'):
            self.launch("kernel", _NORM, 6_000, grid=64, block=128)
            self.launch("kernel", _GEMM, 47_000, grid=132, block=384)
            self.launch("kernel", _GELU, 9_000, grid=512, block=128)
            self.launch("kernel", _GEMM, 49_000, grid=132, block=384)
            self.launch("kernel", _ADD, 5_000, grid=128, block=128)

    def _backward(self, weights: int) -> None:
        for forward_ns in (49_000, 47_000, 14_000, 38_000):
            self.launch("kernel", _GEMM, forward_ns, worker=1, grid=132, block=384)
            self.launch("kernel", _GEMM, forward_ns, worker=1, stream=weights, grid=132, block=384)
            self.launch("kernel", _REDUCE, 5_000, worker=1, stream=weights)
        self.launch("kernel", _GELU, 12_000, worker=1, grid=512, block=128)
        self.launch("kernel", _ATTENTION_BACKWARD, 118_000, worker=1, grid=512, block=256)
        for _ in range(2):
            self.launch("kernel", _NORM, 11_000, worker=1, grid=64, block=128)
            self.launch("kernel", _ADD, 5_000, worker=1, grid=128, block=128)

    def column(self, key: str, default: int = 0) -> npt.NDArray[np.int64]:
        """Return a numeric property of the launches, of shape ``(launches,)``."""
        return np.array([launch.get(key, default) for launch in self.launches], np.int64)

    def names(self, key: str) -> CategoryColumn:
        """Return a text property of the launches."""
        return CategoryColumn.of([launch.get(key) for launch in self.launches])
