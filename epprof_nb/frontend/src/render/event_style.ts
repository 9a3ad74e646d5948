// Look of an event by its kind: shape, colour, tone and opacity.

import type { Kind } from "../data/kinds.ts";
import { TONES } from "./event_colours.ts";
import type { Band } from "./renderer.ts";

/** Offset and height of each kind as shares of its row: kinds differ in shape, not only in hue. */
const SHAPES: Record<Kind, [top: number, height: number]> = {
  0: [0.2, 0.6],
  1: [0, 1],
  2: [0.18, 0.64],
  3: [0.6, 0.4],
  4: [0, 1],
  5: [0.3, 0.4],
};

/** Opacity of events outside the highlight. */
export const DIMMED = 0.22;
/** Minimum width in pixels of a hatched copy. */
export const HATCHED_FROM = 4;
/** Period of the hatching along x, width of its lines, and its opacity. */
export const HATCH = { period: 6, line: 2, alpha: 0.55 };
/** Rectangles wider than `from` pixels end `gap` earlier, to keep neighbours apart. */
export const GAP = { from: 3, gap: 0.5 };
/**
 * Edge at an op's start: `width` pixels in a rectangle at least `to` wide. Up to `from` there is
 * none, or a row of narrow ops would consist of edges.
 */
export const EDGE = { width: 2, from: 3, to: 10 };
/**
 * Share of the edge colour in an op too narrow for an edge, because its fill is pale: `most` for
 * one that stands alone, `far` pixels from the next; `least` for one among many.
 */
export const TONE = { least: 0.15, most: 0.65, far: 8 };
const LEAST_HEIGHT = 2;

/** Share of an edge that a rectangle of a width has, 0 to 1. */
export function edgeShare(wide: number): number {
  return Math.min(Math.max((wide - EDGE.from) / (EDGE.to - EDGE.from), 0), 1);
}

/** Share of the edge colour in an op, by its width and the gaps beside it in pixels. */
export function toneOf(wide: number, before: number, after: number): number {
  const { least, most, far } = TONE;
  const apart = Math.min(Math.max(before, 0), far) + Math.min(Math.max(after, 0), far);
  const tone = (1 - edgeShare(wide)) * (least + ((most - least) * apart) / (2 * far));
  // Quantized, so that similar neighbours are drawn as one.
  return Math.round(tone * TONES) / TONES;
}

/** Minimum opacity of a partly covered rectangle: idle time stays visible at any zoom. */
const FAINTEST = 0.35;
export function opacity(cover: number): number {
  return FAINTEST + (1 - FAINTEST) * cover;
}

export function shape(band: Band, kind: Kind): { y: number; height: number } {
  const [top, share] = band.look === "activity" ? SHAPES[kind] : [0, 1];
  return { y: band.y + top * band.height, height: Math.max(share * band.height, LEAST_HEIGHT) };
}

/** Share of its rectangle that an event covers: below 1 only for merged events. */
export function coverage(
  set: { dur: Float64Array; cover?: Float64Array | undefined },
  event: number,
): number {
  if (!set.cover || !(set.dur[event] > 0)) return 1;
  return Math.min(Math.max(set.cover[event] / set.dur[event], 0), 1);
}
