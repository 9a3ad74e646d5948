// Marked time range: dragged on the ruler with the pointer, or set with keys.

import { duration } from "../../base/format.ts";
import type { Range } from "../../base/time_scale.ts";
import type { Renderer } from "../../render/renderer.ts";
import type { Geometry } from "../geometry.ts";
import type { Drag, Overlay, PointerAt } from "./overlay.ts";

/** Distance in pixels at which an edge can be grabbed. */
const GRIP = 5;
const HANDLE = { width: 4, top: 3 };

type Edge = "start" | "end";

export class RangeMark implements Overlay {
  #range: Range | null = null;
  /** Range before the drag, restored if it is cancelled. */
  #before: Range | null = null;
  /** Last pointer position in pixels. */
  #pointer: number | null = null;

  constructor(
    private readonly whole: Range,
    private readonly geometry: () => Geometry,
    private readonly onChange: (range: Range | null) => void,
  ) {}

  get range(): Range | null {
    return this.#range;
  }

  set(range: Range | null): void {
    this.#range = range;
    this.onChange(range);
  }

  /** Set one edge at the pointer, or at the edge of the view while the pointer is elsewhere. */
  edge(which: Edge): void {
    const geometry = this.geometry();
    const { view } = geometry;
    const time = this.#clamped(this.#pointer === null ? view[which] : geometry.time(this.#pointer));
    const other = this.#range ?? view;
    const range = { ...other, [which]: time };
    // If the edges would cross, move the other one to the edge of the view.
    if (range.start >= range.end) {
      if (which === "start") range.end = Math.max(view.end, time + 1);
      else range.start = Math.min(view.start, time - 1);
    }
    this.set(range);
  }

  draw(renderer: Renderer, geometry: Geometry): void {
    const range = this.#range;
    if (!range) return;
    const { height, ruler } = geometry;
    const text = duration(range.end - range.start);
    renderer.timeRange(range.start, range.end, 0, height, "selected", text);
    const half = geometry.time(HANDLE.width / 2) - geometry.time(0);
    for (const time of [range.start, range.end]) {
      renderer.timeRange(time - half, time + half, HANDLE.top, ruler - HANDLE.top, "selected");
    }
  }

  hover(at: PointerAt): (Node | string)[] | null {
    this.#pointer = at.x;
    if (at.zone !== "ruler") return null;
    const edge = this.#edgeAt(at);
    return [edge ? "Drag to change the range" : "Drag to mark a time range"];
  }

  /** Cursor over the ruler, where a press marks a range. */
  cursor(at: PointerAt): string | null {
    if (at.zone !== "ruler") return null;
    return this.#edgeAt(at) ? "ew-resize" : "col-resize";
  }

  press(at: PointerAt): Drag | null {
    const edge = at.zone === "ruler" ? this.#edgeAt(at) : null;
    if (at.zone !== "ruler" || at.shift || at.alt || at.ctrl) return null;
    const before = this.#range;
    const fixed = this.#clamped(
      edge && before ? before[edge === "start" ? "end" : "start"] : at.time,
    );
    this.#before = before;
    return {
      move: (to) => {
        const time = this.#clamped(to.time);
        this.set({ start: Math.min(fixed, time), end: Math.max(fixed, time) });
      },
      // A click on the ruler clears the range, unless it was on an edge.
      end: (_, moved) => {
        if (!moved && !edge) this.set(null);
      },
      cancel: () => this.set(this.#before),
    };
  }

  #edgeAt(at: PointerAt): Edge | null {
    const range = this.#range;
    if (!range) return null;
    const geometry = this.geometry();
    const near = (time: number): number => Math.abs(geometry.x(time) - at.x);
    const edge: Edge = near(range.start) < near(range.end) ? "start" : "end";
    return near(range[edge]) <= GRIP ? edge : null;
  }

  #clamped(time: number): number {
    return Math.round(Math.min(Math.max(time, this.whole.start), this.whole.end));
  }
}
