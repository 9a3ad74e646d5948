// Minimap of the whole profile, with the view as a handle to move and resize.

import { h, on } from "../base/dom.ts";
import { duration } from "../base/format.ts";
import { type Range, toPixel, toTime } from "../base/time_scale.ts";
import type { Viewport } from "../base/viewport.ts";

export const MINIMAP = 20;
/** Narrowest handle, at any zoom. */
const NARROWEST = 6;
const GRIP = 5;
const ZOOM = 1.5;
const PAGE = 0.9;

type Part = "start" | "end" | "both";

export class Minimap {
  readonly #strip = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  readonly #shape = document.createElementNS("http://www.w3.org/2000/svg", "path");
  readonly #window = h("div", {
    class: "ep-window",
    role: "slider",
    tabindex: "0",
    "aria-label": "Time window",
    "aria-valuemin": "0",
    "aria-valuemax": "100",
  });
  readonly element = h("div", { class: "ep-minimap" }, this.#strip, this.#window);
  #width = 0;
  #stale = true;
  #grab: { part: Part; offset: number } | null = null;

  constructor(
    private readonly viewport: Viewport,
    /** Busy share of the devices in a time range. */
    private readonly busy: (range: Range) => number,
  ) {
    const { element } = this;
    this.#strip.setAttribute("aria-hidden", "true");
    this.#strip.append(this.#shape);
    on(element, "pointerdown", (event) => this.#press(event));
    on(element, "pointermove", (event) => this.#move(event));
    for (const over of ["pointerup", "pointercancel"] as const)
      on(element, over, () => {
        this.#grab = null;
      });
    on(element, "dblclick", () => viewport.fit());
    on(this.#window, "keydown", (event) => this.#key(event));
  }

  /** Align with the canvas: `left` pixels from the edge, `width` pixels wide. */
  resize(left: number, width: number): void {
    this.element.style.marginLeft = `${left}px`;
    this.element.style.width = `${width}px`;
    this.#width = width;
    this.#stale = true;
  }

  /** Place the handle; redraw the strip if its width or the counters have changed. */
  draw(): void {
    if (this.#stale) this.#paint();
    const { view, whole } = this.viewport;
    const [left, right] = this.#edges();
    this.#window.style.left = `${left}px`;
    this.#window.style.width = `${right - left}px`;
    const all = whole.end - whole.start;
    const middle = (view.start + view.end) / 2 - whole.start;
    this.#window.setAttribute("aria-valuenow", String(Math.round((middle / all) * 100)));
    this.#window.setAttribute("aria-valuetext", `${duration(view.start)} to ${duration(view.end)}`);
  }

  /** Mark the strip as outdated, because counters were loaded. */
  invalidate(): void {
    this.#stale = true;
  }

  #paint(): void {
    this.#stale = false;
    const { whole } = this.viewport;
    let path = `M0 ${MINIMAP}`;
    for (let x = 0; x < this.#width; x++) {
      const start = toTime(x, whole, this.#width);
      const share = this.busy({ start, end: toTime(x + 1, whole, this.#width) });
      // Keep the smallest share visible.
      const top = MINIMAP - (share > 0 ? Math.max(share * MINIMAP, 1) : 0);
      path += `V${top.toFixed(1)}h1`;
    }
    this.#shape.setAttribute("d", `${path}V${MINIMAP}z`);
  }

  #edges(): [number, number] {
    const { view, whole } = this.viewport;
    const left = toPixel(view.start, whole, this.#width);
    const right = toPixel(view.end, whole, this.#width);
    const lacking = Math.max(NARROWEST - (right - left), 0) / 2;
    const from = Math.min(Math.max(left - lacking, 0), this.#width - NARROWEST);
    return [from, Math.max(right + lacking, from + NARROWEST)];
  }

  #x(event: PointerEvent): number {
    return event.clientX - this.element.getBoundingClientRect().left;
  }

  #press(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.element.setPointerCapture(event.pointerId);
    event.preventDefault();
    this.#window.focus({ preventScroll: true });
    const x = this.#x(event);
    const [left, right] = this.#edges();
    const { view, whole } = this.viewport;
    const grip = Math.min(GRIP, (right - left) / 3);
    // The full view cannot be moved, but its edges can be dragged inward.
    if (Math.abs(x - left) <= grip) this.#grab = { part: "start", offset: 0 };
    else if (Math.abs(x - right) <= grip) this.#grab = { part: "end", offset: 0 };
    else {
      const time = toTime(x, whole, this.#width);
      const inside = x > left && x < right;
      const half = (view.end - view.start) / 2;
      if (!inside) this.viewport.set({ start: time - half, end: time + half });
      this.#grab = { part: "both", offset: time - this.viewport.view.start };
    }
  }

  #move(event: PointerEvent): void {
    const { viewport } = this;
    const time = toTime(this.#x(event), viewport.whole, this.#width);
    if (!this.#grab) {
      this.#hover(this.#x(event));
      return;
    }
    const { part, offset } = this.#grab;
    const { start, end } = viewport.view;
    if (part === "both") viewport.set({ start: time - offset, end: time - offset + end - start });
    else if (part === "start") viewport.set({ start: Math.min(time, end - 1), end });
    else viewport.set({ start, end: Math.max(time, start + 1) });
  }

  #hover(x: number): void {
    const [left, right] = this.#edges();
    const edge = Math.min(Math.abs(x - left), Math.abs(x - right)) <= GRIP;
    this.element.style.cursor = edge ? "ew-resize" : x > left && x < right ? "grab" : "pointer";
  }

  #key(event: KeyboardEvent): void {
    const { viewport } = this;
    const { start, end } = viewport.view;
    const { whole, width } = viewport;
    const moves: Record<string, () => void> = {
      ArrowUp: () => viewport.zoom(1 / ZOOM),
      ArrowDown: () => viewport.zoom(ZOOM),
      PageUp: () => viewport.pan(-PAGE * width),
      PageDown: () => viewport.pan(PAGE * width),
      Home: () => viewport.set({ start: whole.start, end: whole.start + end - start }),
      End: () => viewport.set({ start: whole.end - (end - start), end: whole.end }),
    };
    const move = moves[event.key];
    if (!move) return;
    move();
    event.preventDefault();
    event.stopPropagation();
  }
}
