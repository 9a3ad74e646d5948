"""Limits of a query: of `epprof_nb.Profile.sql`, and of a query that an assistant sends."""

from __future__ import annotations

TIME_LIMIT_S = 60.0
"""Default of `epprof_nb.Profile.sql`."""
ASSISTANT_TIME_LIMIT_S = 30.0
"""Limit of the tool of `epprof_nb.mcp`, whose clients do not wait for a minute."""

MAX_BYTES = 2 * 2**30
"""Memory of a query of either."""
