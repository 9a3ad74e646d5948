"""A notebook that stays open in JupyterLab while tests write and run its cells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

WAIT_MS = 60_000
IMPORT = "from tests.browser.helpers.known import PROFILES"


class OpenNotebook:
    """The notebook.

    Attributes
    ----------
    page
        The browser's page. Its locators reach into a live view, whose styles are isolated.
    path
        The notebook's file, in the folder where its kernel runs.
    errors
        Errors of the page.
    """

    def __init__(self, page: Page, path: Path, errors: list[str]) -> None:
        self.page = page
        self.path = path
        self.errors = errors

    def cell(self, number: int) -> Locator:
        """A code cell."""
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(number)

    def output(self, number: int) -> str:
        """Output of a cell, as text."""
        return self.cell(number).locator(".jp-OutputArea-output").first.inner_text()

    def start(self, number: int, source: str) -> None:
        """Write a cell and start it."""
        from playwright.sync_api import expect

        keyboard, text = self.page.keyboard, self.cell(number).locator(".cm-content")
        text.click()
        expect(text).to_be_focused()
        keyboard.press("Control+a")
        keyboard.insert_text(source)
        keyboard.press("Control+Enter")

    def run(self, number: int, source: str) -> None:
        """Write a cell and run it; return when it has ended."""
        from playwright.sync_api import expect

        prompt = self.cell(number).locator(".jp-InputPrompt")
        before = prompt.inner_text()
        self.start(number, source)
        ended = re.compile(rf"^(?!{re.escape(before)}$)\[\d+\]:$")
        expect(prompt).to_have_text(ended, timeout=WAIT_MS)

    def show(self, profile: str = "known") -> Page:
        """Show the live view of one of `known.PROFILES`, in Python `live`; the page."""
        view = "live = prof.timeline().widget()"
        return self.show_by(f"{IMPORT}\nprof = PROFILES[{profile!r}]()\n{view}")

    def show_by(self, source: str) -> Page:
        """Run code in the first cell that shows a live view; the page with all of the view."""
        page = self.page
        page.mouse.move(2, 2)
        # This also removes the state that an earlier test left in the view.
        page.evaluate(
            "for (const old of document.querySelectorAll('.epprof-live'))"
            " old.toggleAttribute('data-old', true)"
        )
        self.run(0, source)
        fresh = page.locator(".epprof-output .epprof-live:not([data-old])")
        fresh.locator(".ep-timeline[data-start]").wait_for(timeout=WAIT_MS)
        fresh.locator(".ep-headline .ep-count").first.wait_for(timeout=WAIT_MS)
        return page

    def told(self, expression: str) -> str:
        """Value of an expression, evaluated in the second cell."""
        self.run(1, f"print({expression})")
        return self.output(1).strip()
