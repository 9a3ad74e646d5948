"""Kernels without NumPy's warnings."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.ep.kernel import Array, Context


def quiet(kernel: Callable[..., None]) -> Callable[..., None]:
    """Return a kernel that gives infinities and NaN as results without a warning.

    CuPy has no warnings, and entering NumPy's context manager takes a large part of the time of a
    launch.
    """
    on_host = np.errstate(all="ignore")(kernel)

    @functools.wraps(kernel)
    def run(ctx: Context, *inputs: Array) -> None:
        (on_host if ctx.xp is np else kernel)(ctx, *inputs)

    return run
