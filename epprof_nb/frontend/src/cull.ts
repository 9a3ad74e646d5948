// From events to the rectangles worth drawing: only the window's, and what is thinner than a pixel
// is put together with its neighbours.

import type { Stretch } from "./renderer.ts";
import { type Range, toPixel } from "./scale.ts";
import { covered } from "./shapes.ts";

/** Rectangles of one row, as columns that are kept from frame to frame. */
export class Rects {
  length = 0;
  x = new Float32Array(1024);
  width = new Float32Array(1024);
  /** Share of the rectangle that events cover: below 1 only where it stands for several. */
  cover = new Float32Array(1024);
  /** The event, or the longest of those put together. */
  event = new Int32Array(1024);
  kind = new Uint8Array(1024);

  push(x: number, width: number, cover: number, event: number, kind: number): void {
    if (this.length === this.x.length) this.#grow();
    const i = this.length++;
    this.x[i] = x;
    this.width[i] = width;
    this.cover[i] = cover;
    this.event[i] = event;
    this.kind[i] = kind;
  }

  #grow(): void {
    const wider = <T extends Float32Array | Int32Array | Uint8Array>(old: T, fresh: T): T => {
      fresh.set(old);
      return fresh;
    };
    const size = this.x.length * 2;
    this.x = wider(this.x, new Float32Array(size));
    this.width = wider(this.width, new Float32Array(size));
    this.cover = wider(this.cover, new Float32Array(size));
    this.event = wider(this.event, new Int32Array(size));
    this.kind = wider(this.kind, new Uint8Array(size));
  }
}

/** First position in [low, high) whose value is above `limit`; values must not descend. */
export function firstAbove(values: Float64Array, limit: number, low: number, high: number): number {
  let from = low;
  let to = high;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (values[middle] > limit) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** The slice's events that may touch the window, as [first, end). */
export function visible(slice: Stretch, view: Range): [first: number, end: number] {
  const { set } = slice;
  // An event that ends just where the window starts still has its one pixel.
  const first = firstAbove(set.reach, view.start - 1, slice.first, slice.end);
  return [first, firstAbove(set.start, view.end, first, slice.end)];
}

/**
 * Fills `out` with the rectangles of a slice in a window `width` pixels wide.
 *
 * Rectangles are at least one pixel wide. An event thinner than a pixel joins the one before it
 * when both start within a pixel; `only` leaves out events whose value is 0.
 */
export function rects(
  slice: Stretch,
  view: Range,
  width: number,
  out: Rects,
  only?: Uint8Array,
): void {
  out.length = 0;
  const { set } = slice;
  const { start, dur, kind } = set;
  const [first, end] = visible(slice, view);
  let left = 0;
  let right = 0;
  let busy = 0;
  let longest = -1;
  let members = 0;
  const flush = (): void => {
    if (members === 0) return;
    const span = Math.max(right - left, 1);
    const cover = members === 1 ? covered(set, longest) : Math.min(busy / span, 1);
    out.push(left, span, cover, longest, kind?.[longest] ?? 0);
  };
  for (let i = first; i < end; i++) {
    if (only && only[i] === 0) continue;
    const x0 = toPixel(start[i], view, width);
    const x1 = toPixel(start[i] + dur[i], view, width);
    if (x1 < -1) continue;
    const from = Math.max(x0, -2);
    const to = Math.min(x1, width + 2);
    const thin = to - from < 1;
    // A run grows while its members stay thin and close; a wide event stands alone.
    if (
      members > 0 &&
      thin &&
      from < Math.max(right, left + 1) &&
      (members > 1 || right - left < 1)
    ) {
      right = Math.max(right, to);
      busy += (to - from) * covered(set, i);
      members++;
      if (dur[i] > dur[longest]) longest = i;
      continue;
    }
    flush();
    left = from;
    right = to;
    busy = (to - from) * covered(set, i);
    longest = i;
    members = 1;
  }
  flush();
}
