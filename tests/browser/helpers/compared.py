"""A comparison of two recordings with known times: a loader became faster by a third."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

import epprof_nb
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, MISSING, OPS
from epprof_nb.data.table import Table
from epprof_nb.profiles import Profile

if TYPE_CHECKING:
    from epprof_nb.views.comparison import Comparison

MS = 1_000_000
REPEATS = 12
KERNEL = (0, 114, 178)
LOADER = "batch, labels = load_and_augment(dataset, workers=4, shuffle=True)"
MODEL = "loss = model(batch, labels)"


def comparison() -> Comparison:
    """The comparison."""
    return epprof_nb.compare(_recording(15), _recording(10))


def _recording(loader_ms: int) -> Profile:
    count = 2 * REPEATS
    took = np.tile([loader_ms * MS, 20 * MS], REPEATS)
    end = np.cumsum(took)
    start = end - took
    repeat = np.repeat(np.arange(REPEATS), 2)
    ids = np.arange(1, count + 1)
    ops = Table(
        OPS,
        {
            "op_id": ids,
            "parent_op_id": np.full(count, MISSING),
            "name": CategoryColumn.of([LOADER, MODEL] * REPEATS),
            "op_type": CategoryColumn.constant("line", count),
            "category": CategoryColumn.constant("line", count),
            "thread_id": np.full(count, 7),
            "start_ns": start,
            "end_ns": end,
            "duration_ns": took,
            "count": np.ones(count, np.int64),
            "status": CategoryColumn.constant("complete", count),
            "repeat": repeat,
        },
    )
    begun = start + MS
    work = Table(
        ACTIVITIES,
        {
            "kind": CategoryColumn.of(["memcpy", "kernel"] * REPEATS),
            "name": CategoryColumn.of(["copy to device", "forward<float>"] * REPEATS),
            "op_id": ids,
            "device_id": np.zeros(count, np.int64),
            "stream_id": np.full(count, 7),
            "start_ns": begun,
            "end_ns": end,
            "duration_ns": end - begun,
            "repeat": repeat,
        },
    )
    info = {
        "repeats": [[int(a), int(b)] for a, b in zip(start[::2], end[1::2], strict=True)],
        "wall_ns": int(end[-1]),
        "devices": [{"device_id": 0, "name": "Test GPU", "kind": "gpu"}],
        "threads": [{"thread_id": 7, "name": "main thread"}],
    }
    return Profile({"ops": ops, "activities": work}, info, {})


def holds_the_table_alone(text: str) -> None:
    """Check that a text has the table, but no part of the picture, styles or scripts."""
    of_the_picture = ("main thread", "10.0 ms20.0 ms", "0: start of", "stream 7")
    for leak in (*of_the_picture, "{", "epprof-", "srcdoc", "doctype", "currentColor"):
        assert leak not in text, leak
    assert text.lstrip().startswith("faster")
    assert "15.0 ms \N{RIGHTWARDS ARROW} 10.0 ms" in text.replace("\N{NO-BREAK SPACE}", " ")
    assert text.index("load_and_augment", text.index("elapsed time")) < text.index("loss = model(")
    assert len(text) < 2_000


def pixels(png: bytes) -> np.ndarray:
    """Return the colours of a picture: int64 array of shape (rows, columns, 3)."""
    from matplotlib import image

    return (image.imread(io.BytesIO(png))[..., :3] * 255).round().astype(np.int64)


def is_drawn(png: bytes) -> bool:
    """Return whether the kernels are in a picture."""
    return (np.abs(pixels(png) - KERNEL).max(axis=2) <= 12).sum() > 50
