"""Drawing of ops: an edge if there is room for one, a plain area if there are many."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import OPS
from epprof_nb.data.table import Table
from epprof_nb.profiles import Profile
from tests.browser.helpers.pixels import lane_y, pixel, pixels_at, x_at

pytestmark = pytest.mark.browser

MS = 1_000_000
FILL, EDGE = np.array((233, 236, 240)), np.array((167, 176, 188))
ROW = 17  # height of a row of ops, pixels


def statements(start, duration) -> Profile:
    """A profile of one cell of 100 ms with these statements, ns, in it; no device."""
    start, duration = np.append(0, start), np.append(100 * MS, duration)
    count = len(start)
    ops = Table(
        OPS,
        {
            "op_id": np.arange(1, count + 1),
            "parent_op_id": np.append(-1, np.ones(count - 1, np.int64)),
            # Without names: a font's letters may lie where colours are read.
            "name": CategoryColumn.of(["In[1]", *[""] * (count - 1)]),
            "op_type": CategoryColumn.of(["cell", *["line"] * (count - 1)]),
            "category": CategoryColumn.of(["cell", *["line"] * (count - 1)]),
            "thread_id": np.full(count, 77),
            "start_ns": start,
            "end_ns": start + duration,
            "duration_ns": duration,
            "count": np.ones(count, np.int64),
            "status": CategoryColumn.constant("complete", count),
        },
    )
    return Profile({"ops": ops}, {"wall_ns": 100 * MS, "cell": "In[1]", "devices": []}, {})


def inked(colour) -> float:
    """How far a colour is from an op's fill to its edge, 0 to 1."""
    return float(np.mean((np.array(colour) - FILL) / (EDGE - FILL)))


def test_only_what_is_wide_has_an_edge(shown):
    # Every 0.2 ms an op, without a gap: about two pixels each; then one of 20 ms.
    start = np.append(np.arange(10 * MS, 50 * MS, MS // 5), 60 * MS)
    duration = np.append(np.full(200, MS // 5), 20 * MS)
    page = shown(statements(start, duration))
    y = lane_y(page, "main thread") + ROW
    many = [inked(colour) for colour in pixels_at(page, 20, y + 3, range(60))]
    # No edges: a row of narrow ops is about as light as a wide one, over its whole length.
    assert max(many) < 0.5
    assert 0 < np.mean(many) < 0.3
    wide = [inked(colour) for colour in pixels_at(page, 60, y + 3, range(-3, 12))]
    assert max(wide) > 0.85
    assert sum(ink > 0.5 for ink in wide) <= 3
    assert abs(inked(pixel(page, x_at(page, 75), y + 3))) < 0.05


def test_a_short_op_that_stands_alone_is_seen(shown):
    page = shown(statements([30 * MS, 70 * MS], [MS // 5, 1_000]))
    y = lane_y(page, "main thread") + ROW
    for ms in (30, 70):
        near = [inked(colour) for colour in pixels_at(page, ms, y + 3, range(-2, 4))]
        assert max(near) > 0.3
