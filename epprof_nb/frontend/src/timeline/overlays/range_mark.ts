// A span marked on the timeline: drawn on the ruler with the pointer or set with keys.

import { duration } from "../../base/format.ts";
import type { Range } from "../../base/time_scale.ts";
import type { Renderer } from "../../render/renderer.ts";
import type { Geometry } from "../geometry.ts";
import type { Drag, Overlay, PointerAt } from "./overlay.ts";

/** Pixels beside an edge that still take hold of it. */
const GRIP = 5;
const HANDLE = { width: 4, top: 3 };

type Edge = "start" | "end";

export class SpanMark implements Overlay {
  #span: Range | null = null;
  /** The edge that stays while the other follows the pointer. */
  #before: Range | null = null;
  /** Where the pointer was last, pixels. */
  #pointer: number | null = null;

  constructor(
    private readonly whole: Range,
    private readonly geometry: () => Geometry,
    private readonly changed: (span: Range | null) => void,
  ) {}

  get span(): Range | null {
    return this.#span;
  }

  set(span: Range | null): void {
    this.#span = span;
    this.changed(span);
  }

  /** Sets one edge at the pointer, or at the window's where the pointer is elsewhere. */
  edge(which: Edge): void {
    const geometry = this.geometry();
    const { view } = geometry;
    const time = this.#held(this.#pointer === null ? view[which] : geometry.time(this.#pointer));
    const other = this.#span ?? view;
    const span = { ...other, [which]: time };
    // Beyond the other edge, that one gives way to the window's.
    if (span.start >= span.end) {
      if (which === "start") span.end = Math.max(view.end, time + 1);
      else span.start = Math.min(view.start, time - 1);
    }
    this.set(span);
  }

  draw(renderer: Renderer, geometry: Geometry): void {
    const span = this.#span;
    if (!span) return;
    const { height, ruler } = geometry;
    const text = duration(span.end - span.start);
    renderer.band(span.start, span.end, 0, height, "selected", text);
    const half = geometry.time(HANDLE.width / 2) - geometry.time(0);
    for (const time of [span.start, span.end]) {
      renderer.band(time - half, time + half, HANDLE.top, ruler - HANDLE.top, "selected");
    }
  }

  hover(at: PointerAt): (Node | string)[] | null {
    this.#pointer = at.x;
    if (at.zone !== "ruler") return null;
    const edge = this.#edgeAt(at);
    return [edge ? "Drag to change the span" : "Drag to mark a span"];
  }

  /** The cursor for a place, where this overlay would take a press there. */
  cursor(at: PointerAt): string | null {
    if (at.zone !== "ruler") return null;
    return this.#edgeAt(at) ? "ew-resize" : "col-resize";
  }

  press(at: PointerAt): Drag | null {
    const edge = at.zone === "ruler" ? this.#edgeAt(at) : null;
    if (at.zone !== "ruler" || at.shift || at.alt || at.ctrl) return null;
    const before = this.#span;
    const fixed = this.#held(edge && before ? before[edge === "start" ? "end" : "start"] : at.time);
    this.#before = before;
    return {
      move: (to) => {
        const time = this.#held(to.time);
        this.set({ start: Math.min(fixed, time), end: Math.max(fixed, time) });
      },
      // A click on the ruler takes the span away, unless it was meant for an edge.
      end: (_, moved) => {
        if (!moved && !edge) this.set(null);
      },
      cancel: () => this.set(this.#before),
    };
  }

  #edgeAt(at: PointerAt): Edge | null {
    const span = this.#span;
    if (!span) return null;
    const geometry = this.geometry();
    const near = (time: number): number => Math.abs(geometry.x(time) - at.x);
    const edge: Edge = near(span.start) < near(span.end) ? "start" : "end";
    return near(span[edge]) <= GRIP ? edge : null;
  }

  #held(time: number): number {
    return Math.round(Math.min(Math.max(time, this.whole.start), this.whole.end));
  }
}
