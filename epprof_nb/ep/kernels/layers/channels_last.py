"""Operators whose channels ONNX Runtime has moved to the last axis.

Only the layout of their first input and output differs. They use the kernels of ONNX's operators,
which see the tensors through views.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from epprof_nb.ep import operator_schemas
from epprof_nb.ep.kernel import REGISTRY, Array, Context, builtin
from epprof_nb.ep.kernels.images import convolution, pooling, sampling
from epprof_nb.ep.kernels.layers import normalization
from epprof_nb.ep.kernels.tensors import shape
from epprof_nb.ep.known_operators import CHANNELS_LAST

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.ep.kernel import Kernel

_OPERATORS = {
    convolution: ("Conv", "ConvTranspose"),
    normalization: ("BatchNormalization", "InstanceNormalization", "LRN"),
    pooling: (
        "AveragePool", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "LpPool", "MaxPool",
    ),
    sampling: ("GridSample",),
    shape: ("DepthToSpace", "SpaceToDepth"),
}  # fmt: skip
"""Operators by the module that defines their kernels."""


class _ChannelsFirst:
    """The context of a kernel that makes its output with the channels as the second axis."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._ctx, name)

    def out(self, wanted: Any, dtype: Any = None, *, index: int | None = None) -> Array:  # noqa: ANN401
        """Return an output, seen with the channels as the second axis."""
        if index:
            return self._ctx.out(wanted, dtype, index=index)
        batch, channels, *spatial = wanted
        made = self._ctx.out((batch, *spatial, channels), dtype, index=0)
        return self._ctx.xp.moveaxis(made, -1, 1)


def _with_channels_first(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def kernel(ctx: Context, x: Array, *inputs: Array) -> None:
        function(_ChannelsFirst(ctx), ctx.xp.moveaxis(x, -1, 1), *inputs)

    return kernel


def _define(kernel: Kernel) -> None:
    declared = kernel.declaration
    last = None if declared.last_version == operator_schemas.LAST_VERSION else declared.last_version
    builtin(
        declared.op_type,
        domain=CHANNELS_LAST,
        since=declared.first_version,
        until=last,
        host_inputs=declared.host_inputs,
    )(_with_channels_first(kernel.function))


for _kernel in [k for names in _OPERATORS.values() for k in REGISTRY.of_package(names)]:
    _define(_kernel)
