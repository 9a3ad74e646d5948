"""The lane of memory with many events of an allocator: answers, frames, and the saved page.

The events repeat a history that an H200 recorded. The viewer runs in headless Chromium without a
GPU, live over a bridge to this process, and as a saved page.

    python -m tests.benchmarks.memory.memory_lane [--events 1e6] [--seconds 4]
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.data.schema import MEMORY
from epprof_nb.data.table import Table
from epprof_nb.profiles import Profile
from epprof_nb.recording.memory.block_tables import pool_tables
from epprof_nb.recording.memory.torch_history import TorchMemory
from epprof_nb.recording.memory.torch_snapshot import read_snapshot
from epprof_nb.views.view import write_html
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.wire.live_messages import first_view_message
from tests.benchmarks.memory.memory_at import long_snapshot, ops_between
from tests.benchmarks.shared.frame_rate import drag, report
from tests.benchmarks.viewer import spread
from tests.helpers.live_host import LiveHost
from tests.helpers.torch_snapshots import recorded_snapshot, snapshot_before

if TYPE_CHECKING:
    from collections.abc import Sequence

CLICKS = 20


def profile_of(events: int) -> Profile:
    """Return a profile with that many events of an allocator, and an op for each third."""
    raw, first, last = long_snapshot(events)
    begin_ns = first * 1000
    ops = ops_between(begin_ns, last * 1000, events // 3)
    before = read_snapshot(snapshot_before(recorded_snapshot("training")))
    memory = TorchMemory(before, read_snapshot(raw), 0, 0)
    tables = pool_tables(Table(MEMORY), [memory], ops, begin_ns)
    since = ops.replace(start_ns=ops["start_ns"] - begin_ns, end_ns=ops["end_ns"] - begin_ns)
    return Profile({**tables, "ops": since}, {"wall_ns": (last - first) * 1000, "notes": []}, {})


def clicks(page: Any) -> list[float]:
    """Return the milliseconds from clicks on the lane to the painted holders."""
    box = page.locator(".ep-timeline canvas").last.bounding_box()
    lane = page.locator(".ep-label", has_text="memory").first.bounding_box()
    y, took, before = lane["y"] + 8, [], None
    told = page.locator(".ep-holders .ep-range-head")
    for x in np.linspace(0.05, 0.95, CLICKS):
        began = time.perf_counter()
        page.mouse.click(box["x"] + box["width"] * x, y)
        told.wait_for()
        while (now := told.text_content()) == before:
            pass
        took.append((time.perf_counter() - began) * 1e3)
        before = now
    return took


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one line per figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=lambda text: int(float(text)), default=10**6)
    parser.add_argument("--seconds", type=float, default=4.0)
    args = parser.parse_args(arguments)
    from playwright.sync_api import sync_playwright

    profile = profile_of(args.events)
    print(f"{args.events:,} events, {len(profile.tables['memory_blocks']):,} blocks")
    view_model = ViewModel(profile)
    began = time.perf_counter()
    first = first_view_message(view_model)
    took = (time.perf_counter() - began) * 1e3
    print(f"{'first picture, in Python':34} {took:9,.1f} ms   {len(first) / 1e3:,.0f} kB")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium-headless-shell") or shutil.which("chromium"),
            args=["--no-sandbox"],
        )
        page = chromium.new_page(viewport={"width": 1400, "height": 800})
        host = LiveHost(page, view_model)
        print(f"{'live: bundle to first picture':34} {host.show():9,.1f} ms")
        measure(page, "live", args.seconds)
        windows = [s["python"] + s["drawing"] for s in host.stamps()]
        spread("live: request to painted", windows)
        spread("live: holders, in Python", [s["python"] for s in host.stamps("memory_at")])
        began = time.perf_counter()
        path = Path(folder) / "page.html"
        write_html(profile, path)
        took, nbytes = time.perf_counter() - began, path.stat().st_size
        print(f"{'page: written':34} {took * 1e3:9,.1f} ms   {nbytes / 1e6:.1f} MB")
        page = chromium.new_page(viewport={"width": 1400, "height": 800})
        began = time.perf_counter()
        page.goto(path.as_uri())
        page.locator(".ep-timeline canvas").last.wait_for()
        print(f"{'page: opened':34} {(time.perf_counter() - began) * 1e3:9,.1f} ms")
        measure(page, "page", args.seconds)
        chromium.close()


def measure(page: Any, name: str, seconds: float) -> None:
    """Print the time of clicks, and the frame rate of dragging at a few depths."""
    page.locator(".ep-timeline canvas").last.wait_for()
    page.wait_for_timeout(2000)
    spread(f"{name}: click to holders", clicks(page))
    page.locator(".ep-timeline").focus()
    page.keyboard.press("Escape")
    for depth in range(3):
        report(f"{name}: dragging, depth {depth}", [drag(page, seconds)])
        for _ in range(8):
            page.keyboard.press("w")
        page.wait_for_timeout(1500)


if __name__ == "__main__":
    main()
