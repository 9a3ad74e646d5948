"""Steps between the labels of a time axis."""

from __future__ import annotations

import math


def round_step(rough: float) -> int:
    """Return the smallest of 1, 2 or 5 times a power of ten, in ns, that is at least `rough`.

    Examples
    --------
    >>> round_step(0.3), round_step(130), round_step(5_001)
    (1, 200, 10000)
    """
    power = 10 ** math.floor(math.log10(max(rough, 1)))
    return int(next(n * power for n in (1, 2, 5, 10) if n * power >= rough))
