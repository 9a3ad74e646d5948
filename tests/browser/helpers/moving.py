"""Position of the timeline's window, and the gestures that move it."""

from __future__ import annotations

from tests.browser.helpers.settling import settled

MS = 1_000_000
WHOLE = (0, 100)
"""The window that shows all of the known profile, in milliseconds."""


def window(page) -> tuple[float, float]:
    """Return the window in milliseconds, after zooming and panning have ended."""
    read = "e => [+e.dataset.start, +e.dataset.end]"
    start, end = settled(page).locator(".ep-timeline").evaluate(read)
    return start / MS, end / MS


def near(found: tuple[float, float], expected: tuple[float, float], within: float = 0.3) -> bool:
    """Whether two windows are the same to within a pixel."""
    return all(abs(a - b) <= within for a, b in zip(found, expected, strict=True))


def stage_box(page) -> dict[str, float]:
    """Bounding box of the timeline's canvas on the page."""
    return page.locator(".ep-stage canvas").bounding_box()


def at(page, ms: float, y: float) -> tuple[float, float]:
    """Page coordinates of a time in the window and a height on the canvas."""
    box, (start, end) = stage_box(page), window(page)
    return box["x"] + box["width"] * (ms - start) / (end - start), box["y"] + y


def drag(page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Press at one place of the page and release at another."""
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=5)
    page.mouse.up()


def labels(page, part: str = ".ep-label") -> list[str]:
    """Names of the lanes, from the top down."""
    return page.locator(f"{part} .ep-name").all_text_contents()


def middle(page, label: str) -> float:
    """Height of a label's middle on the canvas."""
    found = page.locator(".ep-label", has_text=label).first.bounding_box()
    return found["y"] + min(found["height"], 17) / 2 - stage_box(page)["y"]


def focused(page, expression: str):
    """Evaluate a function of the element that has the focus, also in a live view's own tree."""
    return page.evaluate(
        f"""() => {{
          let element = document.activeElement;
          while (element.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
          return ({expression})(element);
        }}"""
    )
