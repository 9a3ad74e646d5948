"""Frame rate of the timeline while it is dragged, in headless Chromium without a GPU.

The pointer moves before every frame, so every frame shows another time range. The browser limits
the rate to 60 frames/s. Sizes are those of the window in CSS pixels, with the device pixel ratio.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.view import write_html
from tests.benchmarks.shared.harness import header

SIZES = "1360x650@1,1920x1080@2,3840x2160@1,3840x2160@2"

# The mouse button stays down; the page itself sends exactly one move per frame.
_DRAG = """(canvas, [x, y, seconds]) => new Promise((done) => {
  const stamps = [];
  const frame = (now) => {
    stamps.push(now);
    if (now - stamps[0] > seconds * 1000) return done(stamps);
    const step = (stamps.length % 80) / 20;
    const clientX = x + 150 * (step < 2 ? step - 1 : 3 - step);
    canvas.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY: y, bubbles: true }));
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""


def drag(page, seconds: float) -> list[float]:
    """Frame times in milliseconds while the timeline is dragged back and forth."""
    canvas = page.locator(".ep-timeline canvas").first
    box = canvas.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] - 40
    page.mouse.move(x, y)
    page.mouse.down()
    stamps = canvas.evaluate(_DRAG, [x, y, seconds])
    page.mouse.up()
    return [b - a for a, b in pairwise(stamps)]


class Size(NamedTuple):
    """A window in CSS pixels, and its device pixel ratio."""

    width: int
    height: int
    ratio: float

    @classmethod
    def parse(cls, text: str) -> Size:
        """Read ``WIDTHxHEIGHT@RATIO``; the ratio is 1 where it is missing."""
        match = re.fullmatch(r"(\d+)x(\d+)(?:@([\d.]+))?", text.strip())
        if match is None:
            raise argparse.ArgumentTypeError(f"{text!r} is not of the form 1920x1080@2")
        width, height, ratio = match.groups()
        return cls(int(width), int(height), float(ratio or 1))

    def __str__(self) -> str:
        return f"{self.width}x{self.height}@{self.ratio:g}"


def sizes(text: str) -> list[Size]:
    """Read a comma-separated list of sizes."""
    return [Size.parse(part) for part in text.split(",")]


def report(name: str, runs: list[list[float]]) -> None:
    """Print one line per size: the median rate of all runs, and the times of single frames."""
    rates = [1000 * len(times) / sum(times) for times in runs]
    times = [time for run in runs for time in run]
    slow = statistics.quantiles(times, n=20)[-1]
    print(
        f"{name:14}  {statistics.median(rates):5.1f} frames/s ({min(rates):.1f}-{max(rates):.1f})"
        f"   median {statistics.median(times):5.1f} ms"
        f"   95 % below {slow:5.1f} ms   longest {max(times):5.1f} ms"
    )


def main() -> None:
    """Print one line per window size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--activities", type=int, default=50_000)
    parser.add_argument("--zoom", type=int, default=2, help="presses of the W key before dragging")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of one run")
    parser.add_argument("--runs", type=int, default=3, help="runs of each size, one after another")
    parser.add_argument("--sizes", type=sizes, default=SIZES, help=f"for example {SIZES}")
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    header(f"Frames while dragging, {given.activities:,} activities")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        write_html(synthetic_profile(activities=given.activities), path)
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for size in given.sizes:
            page = chromium.new_page(
                viewport={"width": size.width, "height": size.height},
                device_scale_factor=size.ratio,
            )
            page.goto(path.as_uri())
            page.wait_for_selector(".ep-timeline canvas")
            page.locator(".ep-timeline").focus()
            for _ in range(given.zoom):
                page.keyboard.press("w")
            page.wait_for_timeout(1000)
            report(str(size), [drag(page, given.seconds) for _ in range(given.runs)])
            page.close()
        chromium.close()


if __name__ == "__main__":
    main()
