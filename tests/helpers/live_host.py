"""The live widget's bundle in a separate page that Python answers, without Jupyter."""

from __future__ import annotations

import base64
import json
import time
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from epprof_nb.views.queries.view_selection import Selections
from epprof_nb.views.widget.requests import handle, is_request
from epprof_nb.views.wire.live_messages import first_view_message

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from epprof_nb.views.view_model import ViewModel

_PAGE = """<!doctype html><meta charset="utf-8"><body style="margin:8px"><div id="cell"></div>"""

# The model as anywidget passes it. Bytes are sent as base64, because the bridge only has JSON.
_HOST = """async ({ bundle, state, first }) => {
  const bytes = async (text) => {
    const all = await fetch(`data:application/octet-stream;base64,${text}`);
    return new DataView(await all.arrayBuffer());
  };
  const firstBytes = first ? await bytes(first) : undefined;
  const handlers = new Set();
  window.stamps = [];
  window.deaf = false;
  window.waiting = 0;
  window.pythonTells = (content) => { for (const handler of handlers) handler(content, []); };
  // Whoever draws has asked for the next frame by then; a message comes when that is painted.
  const drawn = () => new Promise((done) => setTimeout(() => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = done;
    port2.postMessage(null);
  })));
  const inside = (root) => [...root.querySelectorAll("*")].map((e) => e.shadowRoot);
  const timeline = (root) => root.querySelector(".ep-timeline")
    ?? inside(root).map((part) => part && timeline(part)).find(Boolean);
  const model = {
    get: (name) => (name === "first" ? firstBytes : state[name]),
    set: () => {},
    on: (_, handler) => handlers.add(handler),
    off: (_, handler) => handlers.delete(handler),
    async send(content) {
      const sent = performance.now();
      if (content.type === "window") window.waiting++;
      const response = await window.pythonAnswers(JSON.stringify(content));
      if (!response || window.deaf) return;
      const buffers = response.data ? [await bytes(response.data)] : [];
      const came = performance.now();
      for (const handler of handlers) handler(response.content, buffers);
      await drawn();
      const painted = performance.now();
      if (content.type === "window") window.waiting--;
      const { start, end } = timeline(document)?.dataset ?? {};
      window.stamps.push({
        type: content.type, drawing: painted - came, python: response.seconds * 1000,
        channel: came - sent - response.seconds * 1000,
        bytes: buffers[0] ? buffers[0].byteLength : 0,
        processor: response.processor * 1000,
        asked: [content.start, content.end], view: [Number(start), Number(end)],
      });
    },
  };
  const url = URL.createObjectURL(new Blob([bundle], { type: "text/javascript" }));
  const widget = (await import(url)).default;
  widget.initialize({ model });
  const began = performance.now();
  await widget.render({ model, el: document.getElementById("cell") });
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - began;
}"""

_NEXT_FRAME = """() => new Promise(
  (done) => requestAnimationFrame(() => requestAnimationFrame(done)))"""


class LiveHost:
    """A page with a live view.

    Attributes
    ----------
    silent
        While set, Python does not answer, like a kernel that is busy or has stopped.
    asked
        Every message of the front end, in order.
    """

    def __init__(self, page: Page, view_model: ViewModel) -> None:
        self.page = page
        self.silent = False
        self.asked: list[dict[str, Any]] = []
        self._selections = Selections(view_model)
        page.expose_function("pythonAnswers", self._answers)
        page.set_content(_PAGE)

    def show(self, *, with_first: bool = True) -> float:
        """Mount the viewer; return the milliseconds until its first picture was drawn."""
        first = (
            base64.b64encode(first_view_message(self._selections.view_model)).decode()
            if with_first
            else ""
        )
        bundle = files("epprof_nb.views").joinpath("static", "widget.js").read_text("utf-8")
        state = {"mark": "host", "place": "", "tab": "timeline"}
        return float(self.page.evaluate(_HOST, {"bundle": bundle, "state": state, "first": first}))

    def close(self) -> None:
        """Close the view as Python does."""
        self.page.evaluate("window.pythonTells({ type: 'close' })")

    def settle(self) -> None:
        """Wait until every requested window is painted."""
        self.page.evaluate(_NEXT_FRAME)  # it requests the window of the last input
        self.page.wait_for_function("window.waiting === 0")

    def stamps(self, kind: str = "window") -> list[dict[str, Any]]:
        """Time of each answer of a type, from the request until it was painted."""
        return [s for s in self.page.evaluate("window.stamps") if s["type"] == kind]

    def _answers(self, text: str) -> dict[str, Any] | None:
        content = json.loads(text)
        self.asked.append(content)
        if self.silent or not is_request(content.get("type")):
            return None
        began, cpu = time.perf_counter(), time.thread_time()
        response = handle(self._selections, content)
        seconds, processor = time.perf_counter() - began, time.thread_time() - cpu
        told = {**response.content, "type": content["type"], "request": content.get("request")}
        data = None if response.data is None else base64.b64encode(response.data).decode()
        return {"content": told, "data": data, "seconds": seconds, "processor": processor}
