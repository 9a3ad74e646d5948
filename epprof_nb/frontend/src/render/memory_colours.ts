// Colours of the parts of memory: a category has the same hue in every profile.

import { hue, TONES, tones } from "./event_colours.ts";
import type { Palette } from "./palettes.ts";

const HUES_OF: Record<string, number> = {
  parameter: 0,
  "optimizer state": 6,
  gradient: 4,
  activation: 2,
  "forward, undecided": 11,
  temporary: 1,
  input: 5,
  workspace: 9,
};
/** Hues of pools, by position: none of the frequent categories. */
const POOL_HUES = [3, 10, 8, 7, 11];
/** Steps from the background to the hue: areas are calmer than events, and greys fainter. */
const TONE = 6;
const GREY_TONES: Record<string, number> = { "before this profile": 6, other: 4, unknown: 3 };

function hueAndTone(name: string, pool: number): [hue: string, tone: number] {
  const number = pool < 0 ? (HUES_OF[name] ?? -1) : (POOL_HUES[pool] ?? -1);
  return [hue(number), number < 0 ? (GREY_TONES[name] ?? TONE) : TONE];
}

/** Colour of a part of memory; `pool` is its position among pools, -1 for a category. */
export function memoryColour(palette: Palette, name: string, pool = -1): string {
  const [own, tone] = hueAndTone(name, pool);
  return tones(palette.background, own)[tone];
}

/** The same for CSS, in any theme; fainter by `share`. */
export function memoryCss(name: string, pool = -1, share = 1): string {
  const [own, tone] = hueAndTone(name, pool);
  return `color-mix(in srgb, ${own} ${(100 * tone * share) / TONES}%, var(--bg))`;
}
