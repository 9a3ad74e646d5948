"""Limits of a query: of `epprof_nb.Profile.sql`, and of a query that an assistant sends."""

from __future__ import annotations

TIME_LIMIT_S = 60.0
"""Default of `epprof_nb.Profile.sql`."""
ASSISTANT_TIME_LIMIT_S = 30.0
"""Limit of the tool of `epprof_nb.mcp`, whose clients do not wait for a minute."""

MAX_BYTES = 2 * 2**30
"""Memory of a query of either."""
_ASSISTANT_BYTES, _BYTES_PER_ROW = 256 * 2**20, 256
"""Memory of a query that an assistant sends: so much, and more for each row of the profile."""


def assistant_bytes(rows: int) -> int:
    """Return the memory limit of a query of an assistant: enough for `summary` on large profiles.

    Parameters
    ----------
    rows
        Number of rows of all tables of the profile.
    """
    return min(_ASSISTANT_BYTES + rows * _BYTES_PER_ROW, MAX_BYTES)
