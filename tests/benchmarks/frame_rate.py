"""Frames a second of the timeline while it is dragged, in headless Chromium without a GPU.

The page asks for frames as fast as the browser gives them (60 a second at most) and keeps their
stamps; meanwhile a mouse drags the timeline to and fro. Both renderers, on the same page.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.page import write_html
from tests.benchmarks.harness import header

WIDTH, HEIGHT = 1200, 400
RENDERERS = ("canvas2d", "webgl")
ARGUMENTS = ["--no-sandbox", "--enable-unsafe-swiftshader"]

STAMPS = """() => {
  window.stamps = [];
  const frame = (now) => { window.stamps.push(now); requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
}"""


def drag(page, seconds: float) -> list[float]:
    """Frame times in milliseconds while the timeline is dragged to and fro."""
    box = page.locator(".ep-timeline canvas").first.bounding_box()
    y = box["y"] + box["height"] - 40
    middle = box["x"] + box["width"] / 2
    page.mouse.move(middle, y)
    page.mouse.down()
    page.evaluate(STAMPS)
    until = time.perf_counter() + seconds
    step = 0
    while time.perf_counter() < until:
        step += 1
        page.mouse.move(middle + 150 * ((step % 40) / 20 - 1), y)
    stamps = page.evaluate("window.stamps")
    page.mouse.up()
    return [b - a for a, b in zip(stamps, stamps[1:], strict=False)]


def report(name: str, times: list[float]) -> None:
    """Print one line: frames a second over all, and what single frames took."""
    rate = 1000 * len(times) / sum(times)
    slow = statistics.quantiles(times, n=20)[-1]
    print(
        f"{name:28}  {rate:6.1f} frames/s   median {statistics.median(times):5.1f} ms"
        f"   95 % below {slow:5.1f} ms   longest {max(times):5.1f} ms"
    )


def main() -> None:
    """Print a line a renderer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--activities", type=int, default=50_000)
    parser.add_argument("--zoom", type=int, default=0, help="times the W key is pressed before")
    parser.add_argument("--seconds", type=float, default=4.0)
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    header(f"Frames while dragging, {WIDTH} x {HEIGHT} pixels, {given.activities:,} activities")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        write_html(synthetic_profile(activities=given.activities), path)
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=ARGUMENTS
        )
        for renderer in RENDERERS:
            page = chromium.new_page(viewport={"width": WIDTH + 160, "height": HEIGHT + 250})
            text = path.read_text()
            asked = Path(folder) / f"{renderer}.html"
            asked.write_text(
                text.replace('id="epprof"', f'id="epprof" data-renderer="{renderer}"', 1)
            )
            page.goto(asked.as_uri())
            page.wait_for_selector(".ep-timeline canvas")
            page.locator(".ep-timeline").focus()
            for _ in range(given.zoom):
                page.keyboard.press("w")
            page.wait_for_timeout(1000)
            report(renderer, drag(page, given.seconds))
            page.close()
        chromium.close()


if __name__ == "__main__":
    main()
