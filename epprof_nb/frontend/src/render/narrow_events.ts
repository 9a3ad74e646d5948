// Narrow events of a window, combined into one rectangle per pixel, and the rectangles of the others.

import { type Range, toPixel } from "../base/time_scale.ts";
import type { RowSlice } from "../data/events.ts";
import { visibleEvents } from "../data/visible_events.ts";
import { CODES, colourCode } from "./event_colours.ts";
import { coverage, EDGE, opacity, toneOf } from "./event_style.ts";

/** Narrower events are accumulated per pixel: edges within a pixel would not add up otherwise. */
const NARROW = 2;
/** Opacities closer than this look the same. */
const SAME = 0.02;

/** Rectangles of one row as columns, reused from frame to frame. */
export class VisibleRects {
  length = 0;
  /** Width of the window, device pixels. */
  pixels = 0;
  /** Rectangles from this one on are pixels that narrow events share. */
  firstShared = 0;
  /** Colour codes of the rectangles, see event_colours.ts. */
  codes: number[] = [];
  readonly #seen = new Uint8Array(CODES);
  x = new Float32Array(1024);
  width = new Float32Array(1024);
  alpha = new Float32Array(1024);
  /** Share of the edge colour, see `toneOf`; 0 except for ops. */
  tone = new Float32Array(1024);
  code = new Uint8Array(1024);
  /**
   * By pixel: coverage by narrow events, the largest coverage by one event, and its code and tone.
   */
  covered = new Float32Array(0);
  most = new Float32Array(0);
  mainCode = new Uint8Array(0);
  mainTone = new Float32Array(0);

  clear(width: number): void {
    this.length = 0;
    this.pixels = width;
    for (const code of this.codes) this.#seen[code] = 0;
    this.codes = [];
    if (this.covered.length < width) {
      this.covered = new Float32Array(width);
      this.most = new Float32Array(width);
      this.mainCode = new Uint8Array(width);
      this.mainTone = new Float32Array(width);
    }
    this.covered.fill(0);
    this.most.fill(0);
  }

  push(x: number, width: number, alpha: number, code: number, tone: number): void {
    if (this.length === this.x.length) this.#grow();
    const i = this.length++;
    if (this.#seen[code] === 0) {
      this.#seen[code] = 1;
      this.codes.push(code);
    }
    this.x[i] = x;
    this.width[i] = width;
    this.alpha[i] = alpha;
    this.code[i] = code;
    this.tone[i] = tone;
  }

  /** Add the coverage of a narrow event to the pixels it touches. */
  accumulate(from: number, to: number, alpha: number, code: number, tone: number): void {
    const end = Math.min(Math.ceil(to), this.pixels);
    for (let pixel = Math.max(Math.floor(from), 0); pixel < end; pixel++) {
      const part = alpha * (Math.min(to, pixel + 1) - Math.max(from, pixel));
      this.covered[pixel] += part;
      if (part <= this.most[pixel]) continue;
      this.most[pixel] = part;
      this.mainCode[pixel] = code;
      this.mainTone[pixel] = tone;
    }
  }

  /** Turn pixels into rectangles, merging similar neighbours. */
  flush(): void {
    const { covered, mainCode: main, mainTone, pixels } = this;
    this.firstShared = this.length;
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
    this.code = wider(this.code, new Uint8Array(size));
  }
}

/**
 * Fill `out` with the rectangles of a row slice in a window `width` pixels wide.
 *
 * An event thinner than `unit` pixels is widened up to that, but never into the next event; the
 * uncovered part makes it fainter, unless it stands alone. `tones` requests the tones of ops.
 */
export function buildVisibleRects(
  slice: RowSlice,
  view: Range,
  width: number,
  unit: number,
  out: VisibleRects,
  tones = false,
): void {
  out.clear(width);
  const { set } = slice;
  const { start, dur, kind, variant, reach } = set;
  const scale = width / (view.end - view.start);
  const [first, end] = visibleEvents(slice, view, unit / scale);
  for (let i = first; i < end; i++) {
    let x0 = toPixel(start[i], view, width);
    const wide = Math.max(dur[i], 0) * scale;
    let x1 = x0 + wide;
    if (x1 < -unit) continue;
    let share = coverage(set, i);
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
      if (tones) tone = toneOf((x1 - x0) / unit, before / unit, after / unit);
    }
    x0 = Math.max(x0, -2 * unit);
    x1 = Math.min(x1, width + 2 * unit);
    const type = colourCode(kind?.[i] ?? 0, variant?.[i]);
    if (x1 - x0 < NARROW * unit) out.accumulate(x0, x1, opacity(share), type, tone);
    else out.push(x0, x1 - x0, opacity(share), type, tone);
  }
  out.flush();
}

/** Smooth step from 0 at 0.5 to 1 at 1. */
function step(value: number): number {
  const t = Math.min(Math.max((value - 0.5) / 0.5, 0), 1);
  return t * t * (3 - 2 * t);
}
