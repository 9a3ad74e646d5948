"""Frames a second of the timeline while it is dragged, in headless Chromium.

The pointer moves before every frame, so that every frame is drawn anew. Without a GPU the browser
gives 60 a second at most; with ``--gpu`` as many as it can. Both renderers, on the same page.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from itertools import pairwise
from pathlib import Path

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.view import write_html
from tests.benchmarks.harness import header

WIDTH, HEIGHT = 1200, 400
RENDERERS = ("canvas2d", "webgl")
ARGUMENTS = ["--no-sandbox", "--enable-unsafe-swiftshader"]
ON_GPU = [
    "--no-sandbox",
    "--use-angle=vulkan",
    "--disable-vulkan-surface",
    "--ignore-gpu-blocklist",
    "--disable-frame-rate-limit",
    "--disable-gpu-vsync",
]
_WEBGL_BY = """() => {
  const gl = document.createElement("canvas").getContext("webgl2");
  const info = gl?.getExtension("WEBGL_debug_renderer_info");
  return gl ? gl.getParameter(info?.UNMASKED_RENDERER_WEBGL ?? gl.RENDERER) : "nothing";
}"""

# The mouse is pressed for good; its moves come from within the page, exactly one a frame.
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
    """Frame times in milliseconds while the timeline is dragged to and fro."""
    canvas = page.locator(".ep-timeline canvas").first
    box = canvas.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] - 40
    page.mouse.move(x, y)
    page.mouse.down()
    stamps = canvas.evaluate(_DRAG, [x, y, seconds])
    page.mouse.up()
    return [b - a for a, b in pairwise(stamps)]


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
    parser.add_argument("--zoom", type=int, default=2, help="times the W key is pressed before")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--gpu", action="store_true", help="have a GPU draw, through Vulkan")
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright

    header(f"Frames while dragging, {WIDTH} x {HEIGHT} pixels, {given.activities:,} activities")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        write_html(synthetic_profile(activities=given.activities), path)
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=ON_GPU if given.gpu else ARGUMENTS
        )
        print(f"WebGL is drawn by {chromium.new_page().evaluate(_WEBGL_BY)}")
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
