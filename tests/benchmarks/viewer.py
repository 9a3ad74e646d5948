"""The live viewer at scale: first picture, answers, message sizes, frames, memory, saved size.

The real bundle of the widget runs in headless Chromium without a GPU; Python answers it in this
process over a bridge of Playwright, whose cost is reported separately.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.breakdowns.by_range import by_range
from epprof_nb.testing import synthetic_profile
from epprof_nb.views.queries.related import related
from epprof_nb.views.queries.view_selection import Selections
from epprof_nb.views.queries.window import WindowQuery, query_window
from epprof_nb.views.view import View
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.wire.headers import late_header
from epprof_nb.views.wire.live_messages import counters_message, first_view_message, window_message
from tests.benchmarks.shared.frame_rate import drag, report
from tests.benchmarks.shared.harness import header
from tests.helpers.live_host import LiveHost

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 1200
STEPS = 40
MARGIN = 0.25
"""Margin requested on each side of the window, as in window_cache.ts."""
DEPTHS = 5


def memory() -> int:
    """Resident bytes of the process."""
    resident = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(resident) * resource.getpagesize()


def spread(name: str, values: list[float], unit: str = "ms") -> None:
    """Print median, 95th percentile and greatest of some values."""
    ordered = sorted(values)
    high = ordered[min(int(0.95 * len(ordered)), len(ordered) - 1)]
    print(
        f"{name:34} median {statistics.median(ordered):9,.1f} {unit}   95 % below {high:9,.1f} "
        f"{unit}   most {ordered[-1]:9,.1f} {unit}   ({len(ordered)})"
    )


def tour(low: int, high: int) -> list[tuple[int, int]]:
    """Windows of a tour: zoom into the middle in steps of 1.4, then pan by a third each."""
    middle, length = (low + high) // 2, high - low
    windows = []
    for _ in range(STEPS):
        windows.append((middle - length // 2, middle + length // 2))
        length = max(int(length / 1.4), 1000)
    length = (high - low) // 500
    for step in range(STEPS):
        start = low + (high - low) // 3 + step * length // 3
        windows.append((start, start + length))
    return windows


def in_python(view_model: ViewModel) -> None:
    """Print the time of answers in Python alone, and their sizes."""
    took, used, strips, sizes, rectangles = [], [], [], [], []
    counters_message(view_model)
    for low, high in tour(*view_model.time_range):
        margin = int((high - low) * MARGIN)
        window = WindowQuery(low - margin, high + margin, WIDTH * (1 + 2 * MARGIN))
        began, cpu = time.perf_counter(), time.thread_time()
        data = window_message(view_model, window)
        took.append((time.perf_counter() - began) * 1e3)
        used.append((time.thread_time() - cpu) * 1e3)
        began = time.perf_counter()
        counters_message(view_model, (2 * low - high, 2 * high - low))
        strips.append((time.perf_counter() - began) * 1e3)
        sizes.append(len(data) / 1e3)
        header_, _ = query_window(view_model, window, details=False)
        rectangles.append(float(sum(sent for sent, _ in header_["shown"].values())))
    spread("answer in Python", took)
    spread("  of the processor", used)
    spread("  its strips, after it", strips)
    spread("message", sizes, "kB")
    spread("rectangles", rectangles, "  ")


def of_everything(view_model: ViewModel) -> None:
    """Print the time of queries about the whole profile."""
    selections = Selections(view_model)
    low, high = view_model.time_range
    ops = view_model.profile.tables["ops"]
    widest = int((ops["end_ns"] - ops["start_ns"]).argmax())
    questions: dict[str, Callable[[], object]] = {
        "an op's relations": lambda: related(view_model, "op", widest, (low, high)),
        "a kernel's relations": lambda: related(view_model, "act", 0),
        "a time range over everything": lambda: by_range(view_model.index, low, high),
        "an op that holds everything, highlighted": lambda: (
            selections.of({"what": "event", "prefix": "op", "row": widest}).highlighted
        ),
    }
    for name, ask in questions.items():
        told = []
        for _ in range(2):
            selections.set_rows({})
            began, cpu = time.perf_counter(), time.process_time()
            ask()
            took, used = time.perf_counter() - began, time.process_time() - cpu
            told.append(f"{took * 1e3:9,.1f} ms   ({used * 1e3:,.0f} ms of processor)")
        print(f"{name:34} {told[0]}   again {told[1]}")


def wander(host: LiveHost, x: float, y: float) -> None:
    """Zoom in from the whole profile, pan, zoom out and in again; wait for each picture."""
    mouse = host.page.mouse

    def wheel(delta: float, times: int) -> None:
        for _ in range(times):
            mouse.wheel(0, delta)
            host.settle()

    def along(pixels: float, times: int) -> None:
        for _ in range(times):
            mouse.down()
            mouse.move(x + pixels, y, steps=4)
            mouse.up()
            mouse.move(x, y)
            host.settle()

    mouse.move(x, y)
    for _ in range(DEPTHS):
        wheel(-240, 7)
        along(-0.4 * WIDTH, 8)
        wheel(240, 3)
        along(0.4 * WIDTH, 5)


def looked_at(stamp: dict[str, Any]) -> bool:
    """Whether an answer is for the window that was painted."""
    (start, end), (low, high) = stamp["asked"], stamp["view"]
    return start <= low + 1 and end >= high - 1 and end - start < 3 * (high - low)


def in_browser(view_model: ViewModel, seconds: float) -> None:
    """Print the time from a request to its paint, and the frame rate while dragging."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = chromium.new_page(viewport={"width": WIDTH + 200, "height": 800})
        host = LiveHost(page, view_model)
        print(f"{'browser: bundle to first picture':34} {host.show():9,.1f} ms")
        canvas = page.locator(".ep-timeline canvas").last
        canvas.wait_for()
        page.wait_for_timeout(1500)
        page.locator(".ep-timeline").focus()
        box = canvas.bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] - 40
        wander(host, x, y)
        # Only answers for the visible window count; prefetched windows do not delay the reader.
        stamps = [stamp for stamp in host.stamps() if looked_at(stamp)]
        spread("request to painted", [stamp["python"] + stamp["drawing"] for stamp in stamps])
        spread("  in Python", [stamp["python"] for stamp in stamps])
        spread("    of the processor", [stamp["processor"] for stamp in stamps])
        spread("  in the browser", [stamp["drawing"] for stamp in stamps])
        spread("  (bridge, not counted)", [stamp["channel"] for stamp in stamps])
        spread("  message", [stamp["bytes"] / 1e3 for stamp in stamps], "kB")
        page.keyboard.press("0")
        page.wait_for_timeout(1500)
        for _ in range(12):
            page.keyboard.press("w")
        page.wait_for_timeout(1500)
        report("dragging", [drag(page, seconds)])
        chromium.close()


def main() -> None:
    """Print one line per figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--activities", type=int, default=10_000_000)
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--saved", action="store_true", help="measure the saved output too")
    given = parser.parse_args()
    header(f"The live viewer of {given.activities:,} activities on {given.streams} streams")
    profile = synthetic_profile(activities=given.activities, streams=given.streams)
    tables = sum(table.nbytes for table in profile.tables.values())
    before = memory()
    for attempt in ("first picture, in Python", "  again, from scratch"):
        view_model = ViewModel(profile)
        began, cpu = time.perf_counter(), time.process_time()
        data = first_view_message(view_model)
        took, used = time.perf_counter() - began, time.process_time() - cpu
        print(
            f"{attempt:34} {took * 1e3:9,.1f} ms   ({used * 1e3:,.0f} ms of processor)   "
            f"{len(data) / 1e3:,.0f} kB"
        )
    in_python(view_model)
    began = time.perf_counter()
    late_header(view_model)
    print(f"{'headline, counted once':34} {(time.perf_counter() - began) * 1e3:9,.1f} ms")
    of_everything(view_model)
    held = memory() - before
    print(f"{'memory beside the tables':34} {held / 1e6:9,.0f} MB   ({held / tables:.2f} of them)")
    in_browser(view_model, given.seconds)
    if given.saved:
        began = time.perf_counter()
        html = View(profile).mimebundle(selections=Selections(view_model))["text/html"]
        took = time.perf_counter() - began
        print(f"{'saved output':34} {len(html) / 1e6:9,.2f} MB   made in {took:.1f} s")
        held = memory() - before
        print(f"{'memory with it':34} {held / 1e6:9,.0f} MB   ({held / tables:.2f} of the tables)")


if __name__ == "__main__":
    main()
