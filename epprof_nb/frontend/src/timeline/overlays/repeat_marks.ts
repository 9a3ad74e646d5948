// Repeats of the profiled code: a line where each starts, and its number on the ruler.

import type { Renderer } from "../../render/renderer.ts";
import type { Geometry } from "../geometry.ts";
import type { Overlay } from "./overlay.ts";

/** Least distance of two lines, pixels. */
const LEAST = 4;
/** Estimated width of a letter, and space around a label, pixels. */
const LETTER = 6.5;
const PADDING = 8;

export interface RepeatLabel {
  text: string;
  left: number;
  right: number;
}

export class RepeatMarks implements Overlay {
  constructor(private readonly bounds: readonly (readonly [start: number, end: number])[]) {}

  under(renderer: Renderer, geometry: Geometry): void {
    const { height, ruler, width } = geometry;
    let last = Number.NEGATIVE_INFINITY;
    const { bounds } = this;
    const ends = bounds.length ? [bounds[bounds.length - 1][1]] : [];
    for (const time of [...bounds.map(([start]) => start), ...ends]) {
      const x = geometry.x(time);
      if (x < 0 || x > width || x - last < LEAST) continue;
      renderer.boundary(x, 0, height);
      last = x;
    }
    for (const { text, left } of this.labels(geometry)) renderer.tag(text, left, ruler / 2);
  }

  reserved(geometry: Geometry): [left: number, right: number][] {
    return this.labels(geometry).map(({ left, right }) => [left, right]);
  }

  /** Labels of the visible repeats that have room for one. */
  labels(geometry: Geometry): RepeatLabel[] {
    return this.bounds.flatMap(([start, end], i) => {
      const left = Math.max(geometry.x(start), 0);
      const until = Math.min(geometry.x(end), geometry.width);
      const text = `repeat ${i}`;
      const right = left + text.length * LETTER + PADDING;
      return right <= until ? [{ text, left, right }] : [];
    });
  }
}
