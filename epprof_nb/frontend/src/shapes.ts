// How an event looks by its kind.

import type { Kind } from "./model.ts";
import type { Band } from "./renderer.ts";
import { type Palette, rgb } from "./theme.ts";

/** Height and offset of each kind within its row, as shares: kinds differ in shape, not only hue. */
const SHAPES: Record<Kind, [top: number, height: number]> = {
  0: [0.2, 0.6],
  1: [0, 1],
  2: [0.18, 0.64],
  3: [0.6, 0.4],
  4: [0, 1],
  5: [0.3, 0.4],
};
export const KINDS: readonly Kind[] = [0, 1, 2, 3, 4, 5];
export const COPY: Kind = 2;

/** Opacity of what is not lit while a selection stands. */
export const DIMMED = 0.22;
/** Copies at least this wide are hatched, pixels. */
export const HATCHED_FROM = 4;
/** The hatching's period along x, its line's width there, and its opacity. */
export const HATCH = { period: 6, line: 2, alpha: 0.55 };
/** Rectangles wider than `from` pixels give up `gap` at their end, to keep neighbours apart. */
export const GAP = { from: 3, gap: 0.5 };
/**
 * The edge at an op's start: its width, pixels, in a rectangle at least `to` wide. Up to `from`
 * there is none, or a row of narrow ops would be nothing but edges.
 */
export const EDGE = { width: 2, from: 3, to: 10 };
/**
 * Shares of the edge's colour in an op too narrow for an edge: its own is pale. `most` has one that
 * stands alone, `far` pixels from the next, or it would be lost; `least` one among many.
 */
export const TONE = { least: 0.15, most: 0.65, far: 8 };
const LEAST_HEIGHT = 2;

/** How much of an edge a rectangle so many pixels wide has, 0 to 1. */
export function edged(wide: number): number {
  return Math.min(Math.max((wide - EDGE.from) / (EDGE.to - EDGE.from), 0), 1);
}

/** How much of the edge's colour an op has all over, by its width and the gaps beside it, pixels. */
export function toned(wide: number, before: number, after: number): number {
  const { least, most, far } = TONE;
  const apart = Math.min(Math.max(before, 0), far) + Math.min(Math.max(after, 0), far);
  const tone = (1 - edged(wide)) * (least + ((most - least) * apart) / (2 * far));
  // In steps: neighbours that differ by less are drawn as one.
  return Math.round(tone * TONES) / TONES;
}

/** Steps between an op's own colour and its edge's. */
export const TONES = 8;
const known = new Map<string, string[]>();

/** Colours from an op's own (step 0) to that of its edge (step `TONES`). */
export function tones(fill: string, edge: string): string[] {
  let all = known.get(fill + edge);
  if (!all) {
    const [from, to] = [rgb(fill), rgb(edge)];
    all = Array.from({ length: TONES + 1 }, (_, step) => {
      const mixed = from.map((a, i) => Math.round(255 * (a + ((to[i] - a) * step) / TONES)));
      return `#${mixed.map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    });
    known.set(fill + edge, all);
  }
  return all;
}

/** Opacity where events cover only a share of a rectangle: idle stays visible at any zoom. */
const FAINTEST = 0.35;
export function opacity(cover: number): number {
  return FAINTEST + (1 - FAINTEST) * cover;
}

export function shape(band: Band, kind: Kind): { y: number; height: number } {
  const [top, share] = band.look === "activity" ? SHAPES[kind] : [0, 1];
  return { y: band.y + top * band.height, height: Math.max(share * band.height, LEAST_HEIGHT) };
}

export function fill(band: Band, palette: Palette, kind: Kind): string {
  if (band.look === "op") return palette.ops[kind];
  return band.look === "api" ? palette.api : palette.kinds[kind];
}

/** Share of its rectangle that an event covers: below 1 only where it stands for several. */
export function covered(
  set: { dur: Float64Array; cover?: Float64Array | undefined },
  event: number,
): number {
  if (!set.cover || !(set.dur[event] > 0)) return 1;
  return Math.min(Math.max(set.cover[event] / set.dur[event], 0), 1);
}
