"""Tensors made larger or smaller at their edges."""

from __future__ import annotations

from epprof_nb.ep.kernel import Array, Context, builtin
from epprof_nb.ep.kernels.shared.axes import distinct
from epprof_nb.ep.kernels.shared.checks import choice

_MODES = ("constant", "reflect", "edge", "wrap")


def _pad(ctx: Context, x: Array, pads: list[tuple[int, int]], value: Array | float) -> None:
    mode = choice(ctx.attrs, "mode", _MODES)
    # Negative amounts remove elements.
    kept = tuple(
        slice(max(-before, 0), n - max(-after, 0))
        for n, (before, after) in zip(x.shape, pads, strict=True)
    )
    cut = x[kept]
    widths = [(max(before, 0), max(after, 0)) for before, after in pads]
    for axis, (n, width) in enumerate(zip(cut.shape, widths, strict=True)):
        if mode == "reflect" and max(width) >= max(n, 1):
            raise ValueError(f"axis {axis} has {n} elements, too few to reflect {max(width)}")
    out = ctx.out([n + b + a for n, (b, a) in zip(cut.shape, widths, strict=True)])
    if mode == "constant":
        out[...] = value
        out[tuple(slice(b, b + n) for n, (b, _) in zip(cut.shape, widths, strict=True))] = cut
    else:
        out[...] = ctx.xp.pad(cut, widths, mode=mode)


def _expect_amounts(given: int, axes: int) -> None:
    if given != 2 * axes:
        raise ValueError(f"pads has {given} entries, not 2 for each of {axes} axes")


@builtin("Pad", since=11, host_inputs=[1, 3])
def pad(
    ctx: Context, x: Array, pads: Array, value: Array | None = None, axes: Array | None = None
) -> None:
    """Elements added around a tensor, or cut off."""
    chosen = range(x.ndim) if axes is None else distinct(axes.tolist(), x.ndim)
    amounts = pads.tolist()
    count = len(chosen)
    _expect_amounts(len(amounts), count)
    widths = [(0, 0)] * x.ndim
    for i, axis in enumerate(chosen):
        widths[axis] = (amounts[i], amounts[i + count])
    fill = 0 if value is None or not value.size else value.reshape(())
    _pad(ctx, x, widths, fill)


@builtin("Pad", since=2, until=10)
def _pad_before_11(ctx: Context, x: Array) -> None:
    given = ctx.attrs["pads"]
    _expect_amounts(len(given), x.ndim)
    widths = list(zip(given[: x.ndim], given[x.ndim :], strict=True))
    _pad(ctx, x, widths, ctx.attrs["value"])


@builtin("CenterCropPad", since=18, host_inputs=[1])
def center_crop_pad(ctx: Context, x: Array, shape: Array) -> None:
    """The center of a tensor, in another shape; zeros around it where that is larger."""
    axes = distinct(ctx.attrs.get("axes") or range(x.ndim), x.ndim)
    wanted = list(x.shape)
    source, target = [slice(None)] * x.ndim, [slice(None)] * x.ndim
    for axis, size in zip(axes, shape.reshape(-1).tolist(), strict=True):
        wanted[axis] = size
        have = x.shape[axis]
        if size < have:
            start = (have - size) // 2
            source[axis] = slice(start, start + size)
        else:
            start = (size - have) // 2
            target[axis] = slice(start, start + have)
    out = ctx.out(wanted)
    out[...] = 0
    out[tuple(target)] = x[tuple(source)]
