"""Read the timeline's canvas: the place of a time and a lane, and the colour there."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt

from tests.browser.helpers.settling import settled

WHITE = (255, 255, 255)
KERNEL, COPY, SET = (0, 114, 178), (230, 159, 0), (0, 158, 115)
KERNEL_2 = (7, 95, 146)
"""Shade of the kernels whose name has the second most device time."""
RULER, BUSY = 22, 38


def ready(page):
    """The page, with its timeline drawn."""
    page.wait_for_selector(".ep-timeline[data-start] canvas")
    return settled(page)


def canvas(page):
    """The timeline's canvas, in a page or in a live view, whose elements are isolated."""
    return page.locator(".ep-timeline canvas").first


def pixel(page, x: float, y: float) -> tuple[int, int, int]:
    """Colour of the canvas at CSS pixels."""
    return pixels(page, [(x, y)])[0]


def pixels(page, places: list[tuple[float, float]]) -> list[tuple[int, int, int]]:
    """Colours of the canvas at several places, asked for at once: a question takes 10 ms."""
    found = canvas(page).evaluate(
        """(canvas, places) => {
          const ratio = canvas.width / canvas.clientWidth;
          const context = canvas.getContext("2d");
          const colour = (x, y) => context.getImageData(x * ratio, y * ratio, 1, 1).data;
          return places.map(([x, y]) => [...colour(x, y)].slice(0, 3));
        }""",
        places,
    )
    return [tuple(colour) for colour in found]


def pixels_at(page, ms: float, y: float, offsets=range(8)) -> list[tuple[int, int, int]]:
    """Colours at a time of the known profile, and so many CSS pixels to the right of it."""
    x = x_at(page, ms)
    return pixels(page, [(x + offset, y) for offset in offsets])


def picture(page) -> npt.NDArray[np.int64]:
    """Pixels of the canvas on the screen: (height, width, 3), 0 to 255."""
    from PIL import Image

    shot = canvas(page).screenshot()
    return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(np.int64)


def width(page) -> float:
    """Width of the canvas in CSS pixels."""
    return canvas(page).evaluate("e => e.clientWidth")


def x_at(page, ms: float) -> float:
    """Position of a time of the known profile while all 100 ms of it are shown."""
    return width(page) * ms / 100


def lane_y(page, label: str) -> float:
    """Middle of a lane, from its label."""
    top = page.locator(".ep-label", has_text=label).first.bounding_box()["y"]
    return top - canvas(page).bounding_box()["y"] + 8


def click(page, ms: float, y: float) -> None:
    """Click at a time of the known profile."""
    page.click(".ep-timeline canvas", position={"x": x_at(page, ms), "y": y})
    settled(page)
