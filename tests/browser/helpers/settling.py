"""Wait until a page has drawn all requested frames, instead of a fixed time."""

from __future__ import annotations

import time

# Runs before the page's own scripts, in every frame. The viewer draws, glides and eases in
# animation frames: with none requested, the picture is final.
COUNT_FRAMES = """
(() => {
  const request = window.requestAnimationFrame.bind(window);
  const cancel = window.cancelAnimationFrame.bind(window);
  const requested = new Set();
  window.requestAnimationFrame = (callback) => {
    const id = request((now) => {
      requested.delete(id);
      callback(now);
    });
    requested.add(id);
    return id;
  };
  window.cancelAnimationFrame = (id) => {
    requested.delete(id);
    cancel(id);
  };
  const frame = () => new Promise((done) => request(done));
  window.framesSettled = async (limit) => {
    const end = performance.now() + limit;
    for (let quiet = 0; quiet < 2; quiet = requested.size ? 0 : quiet + 1) {
      if (performance.now() > end) throw new Error("the page does not stop drawing");
      await frame();
    }
  };
})();
"""

LIMIT_MS = 60_000


def settled(page):
    """Return the page, or the frame, once it draws nothing more."""
    page.evaluate("limit => window.framesSettled(limit)", LIMIT_MS)
    return page


def wait_until(page, expression: str, arg=None) -> None:
    """Wait until a JavaScript expression, or a function of `arg`, is true in the page or frame.

    `page.wait_for_function()` evaluates text in the page itself from the second time on, which the
    Content Security Policy of exported pages forbids: it fails where the first answer is false.
    """
    end = time.monotonic() + LIMIT_MS / 1e3
    while not page.evaluate(expression, arg):
        if time.monotonic() > end:
            raise TimeoutError(f"not true after {LIMIT_MS // 1000} s: {expression}")
        time.sleep(0.02)


def pause(page, milliseconds: int) -> None:
    """Wait in the page: its timers of less than this time have run, even if it was suspended."""
    page.evaluate("time => new Promise((done) => setTimeout(done, time))", milliseconds)
