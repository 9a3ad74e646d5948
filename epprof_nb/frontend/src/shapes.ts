// How an event looks by its kind, the same in every renderer.

import type { Kind } from "./model.ts";
import type { Band } from "./renderer.ts";
import type { Palette } from "./theme.ts";

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
/** Width of the edge at an op's start, pixels. */
export const EDGE = 2;
const LEAST_HEIGHT = 2;

/** Opacity where events cover only a share of a rectangle: idle stays visible at any zoom. */
export const FAINTEST = 0.35;
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
