"""A Triton kernel: Triton reads its source from this file."""

import triton
import triton.language as tl


@triton.jit
def add_one(x, n, BLOCK: tl.constexpr):  # noqa: N803
    """Add one to each of `n` numbers."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(x + at, tl.load(x + at, mask=inside) + 1, mask=inside)
