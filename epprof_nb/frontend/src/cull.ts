// From events to the rectangles worth drawing: only the window's, and of what is narrow one a pixel.

import type { Stretch } from "./renderer.ts";
import { type Range, toPixel } from "./scale.ts";
import { covered, EDGE, opacity, toned } from "./shapes.ts";

/** Narrower events are drawn pixel by pixel: edges within a pixel would not add up otherwise. */
const NARROW = 2;
/** Opacities nearer than this look the same. */
const SAME = 0.02;

/** Rectangles of one row, as columns that are kept from frame to frame. */
export class Rects {
  length = 0;
  /** Width of the window. */
  pixels = 0;
  /** From here on, rectangles are pixels that narrow events share. */
  shared = 0;
  /** Bit k is set where there is a rectangle of kind k. */
  kinds = 0;
  x = new Float32Array(1024);
  width = new Float32Array(1024);
  alpha = new Float32Array(1024);
  /** How much of its edge's colour each has all over, see `toned`; 0 but for ops. */
  tone = new Float32Array(1024);
  kind = new Uint8Array(1024);
  /** By pixel: how much narrow events cover it, the most that one does, and its kind and tone. */
  covered = new Float32Array(0);
  most = new Float32Array(0);
  main = new Uint8Array(0);
  mainTone = new Float32Array(0);

  clear(width: number): void {
    this.length = 0;
    this.pixels = width;
    this.kinds = 0;
    if (this.covered.length < width) {
      this.covered = new Float32Array(width);
      this.most = new Float32Array(width);
      this.main = new Uint8Array(width);
      this.mainTone = new Float32Array(width);
    }
    this.covered.fill(0);
    this.most.fill(0);
  }

  push(x: number, width: number, alpha: number, kind: number, tone: number): void {
    if (this.length === this.x.length) this.#grow();
    const i = this.length++;
    this.kinds |= 1 << kind;
    this.x[i] = x;
    this.width[i] = width;
    this.alpha[i] = alpha;
    this.kind[i] = kind;
    this.tone[i] = tone;
  }

  /** Adds what a narrow event covers to the pixels that it touches. */
  spread(from: number, to: number, alpha: number, kind: number, tone: number): void {
    const end = Math.min(Math.ceil(to), this.pixels);
    for (let pixel = Math.max(Math.floor(from), 0); pixel < end; pixel++) {
      const part = alpha * (Math.min(to, pixel + 1) - Math.max(from, pixel));
      this.covered[pixel] += part;
      if (part <= this.most[pixel]) continue;
      this.most[pixel] = part;
      this.main[pixel] = kind;
      this.mainTone[pixel] = tone;
    }
  }

  /** Makes rectangles of the pixels, one of neighbours that look the same. */
  gather(): void {
    const { covered, main, mainTone, pixels } = this;
    this.shared = this.length;
    for (let pixel = 0; pixel < pixels; ) {
      const from = pixel++;
      if (covered[from] === 0) continue;
      const alpha = Math.min(covered[from], 1);
      while (
        pixel < pixels &&
        covered[pixel] > 0 &&
        main[pixel] === main[from] &&
        Math.abs(mainTone[pixel] - mainTone[from]) < SAME &&
        Math.abs(Math.min(covered[pixel], 1) - alpha) < SAME
      )
        pixel++;
      this.push(from, pixel - from, alpha, main[from], mainTone[from]);
    }
  }

  #grow(): void {
    const wider = <T extends Float32Array | Uint8Array>(old: T, fresh: T): T => {
      fresh.set(old);
      return fresh;
    };
    const size = this.x.length * 2;
    this.x = wider(this.x, new Float32Array(size));
    this.width = wider(this.width, new Float32Array(size));
    this.alpha = wider(this.alpha, new Float32Array(size));
    this.tone = wider(this.tone, new Float32Array(size));
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

/**
 * The slice's events that may touch the window, as [first, end).
 *
 * `pixel` ns before the window count as well: a thin event is widened up to one.
 */
export function visible(slice: Stretch, view: Range, pixel = 1): [first: number, end: number] {
  const { set } = slice;
  const first = firstAbove(set.reach, view.start - pixel, slice.first, slice.end);
  return [first, firstAbove(set.start, view.end, first, slice.end)];
}

/**
 * Fills `out` with the rectangles of a slice in a window `width` pixels wide.
 *
 * An event thinner than `unit` pixels is widened up to that, but never into the next event; what it
 * does not cover of its widened self makes it fainter, unless it stands alone. `tones` asks for their
 * tones.
 */
export function rects(
  slice: Stretch,
  view: Range,
  width: number,
  unit: number,
  out: Rects,
  tones = false,
): void {
  out.clear(width);
  const { set } = slice;
  const { start, dur, kind, reach } = set;
  const scale = width / (view.end - view.start);
  const [first, end] = visible(slice, view, unit / scale);
  for (let i = first; i < end; i++) {
    let x0 = toPixel(start[i], view, width);
    const wide = Math.max(dur[i], 0) * scale;
    let x1 = x0 + wide;
    if (x1 < -unit) continue;
    let share = covered(set, i);
    let tone = 0;
    if (wide < (tones ? EDGE.to * unit : unit)) {
      const after = i + 1 < slice.end ? (start[i + 1] - reach[i]) * scale : width;
      const before = i > slice.first ? (start[i] - reach[i - 1]) * scale : width;
      if (wide < unit) {
        const room = Math.min(wide + Math.max(after, 0), unit);
        const alone = step(Math.min(before, after) / unit);
        share *= alone + (1 - alone) * (wide / Math.max(room, 1e-9));
        x1 = x0 + room;
      }
      if (tones) tone = toned((x1 - x0) / unit, before / unit, after / unit);
    }
    x0 = Math.max(x0, -2 * unit);
    x1 = Math.min(x1, width + 2 * unit);
    const type = kind?.[i] ?? 0;
    if (x1 - x0 < NARROW * unit) out.spread(x0, x1, opacity(share), type, tone);
    else out.push(x0, x1 - x0, opacity(share), type, tone);
  }
  out.gather();
}

/** From 0 at a half to 1 at one, without corners. */
function step(value: number): number {
  const t = Math.min(Math.max((value - 0.5) / 0.5, 0), 1);
  return t * t * (3 - 2 * t);
}
