// Repeats of the profiled code: a line where each starts, and its number on the ruler.

import type { RepeatNames } from "../../data/wire_types.ts";
import type { Renderer } from "../../render/renderer.ts";
import type { Geometry } from "../geometry.ts";
import type { Overlay } from "./overlay.ts";

/** Least distance of two lines, pixels. */
const LEAST = 4;
/** Estimated width of a letter, and space around a label, pixels. */
const LETTER = 6.5;
const PADDING = 8;

/** Length of a tick on the ruler, pixels. */
const TICK = 5;

interface RepeatLabel {
  repeat: number;
  text: string;
  left: number;
  right: number;
}

export class RepeatMarks implements Overlay {
  constructor(
    private readonly bounds: readonly (readonly [start: number, end: number])[],
    private readonly names: RepeatNames,
  ) {}

  under(renderer: Renderer, geometry: Geometry): void {
    const { height, ruler, width } = geometry;
    const labels = this.labels(geometry);
    const labelled = new Set(labels.map(({ repeat }) => repeat));
    const starts = this.bounds.map(([start]) => start);
    let last = Number.NEGATIVE_INFINITY;
    [...starts, ...this.bounds.slice(-1).map(([, end]) => end)].forEach((time, repeat) => {
      const x = geometry.x(time);
      if (x < 0 || x > width || x - last < LEAST) return;
      // Without a label, a line through the ruler would only cross the times.
      renderer.boundary(x, labelled.has(repeat) ? 0 : ruler - TICK, height);
      last = x;
    });
    for (const { text, left } of labels) renderer.tag(text, left, ruler / 2);
  }

  reserved(geometry: Geometry): [left: number, right: number][] {
    return this.labels(geometry).map(({ left, right }) => [left, right]);
  }

  /** Labels of the visible repeats that have room for one. */
  labels(geometry: Geometry): RepeatLabel[] {
    return this.bounds.flatMap(([start, end], repeat) => {
      const left = Math.max(geometry.x(start), 0);
      const until = Math.min(geometry.x(end), geometry.width);
      const text = `${this.names.unit} ${this.names.first + repeat}`;
      const right = left + text.length * LETTER + PADDING;
      return right <= until ? [{ repeat, text, left, right }] : [];
    });
  }
}
