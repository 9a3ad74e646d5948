"""Name of the folder of a part: the rank, the process id, and a number from the second part on."""

from __future__ import annotations

import re

PART_NAME = re.compile(r"rank-(none|\d{5,10})-(\d{1,10})(?:-\d{1,5})?")
"""Pattern of the name; its groups are the rank, or ``none``, and the process id."""


def part_name(rank: int | None, pid: int) -> str:
    """Return the name of the first part of a process.

    Examples
    --------
    >>> part_name(3, 12345), part_name(None, 7)
    ('rank-00003-12345', 'rank-none-7')
    """
    return f"rank-{'none' if rank is None else f'{rank:05d}'}-{pid}"
