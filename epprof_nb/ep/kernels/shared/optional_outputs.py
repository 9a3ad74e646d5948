"""Outputs that a node may omit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, Context


def write_optional(ctx: Context, index: int, value: Array) -> None:
    """Write an output, unless the node omits it."""
    if index < ctx.num_outputs:
        out = ctx.out(value.shape, index=index)
        if out is not None:
            out[...] = value
