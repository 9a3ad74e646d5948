// Colours of events. By kind, each kind has a hue, with a shade by name so that neighbours differ.
// By name or op, the names with the most time have a hue each, and all others share one. By
// operator, a name has the same hue in every profile, which Python computes.
//
// The renderer combines the kind of an event, which is its shape, and a variant of its colour into
// one code.

import { memoize } from "../base/memoize.ts";
import { KIND, type Kind } from "../data/kinds.ts";
import { HUES, OTHER_HUE, type Palette, rgb } from "./palettes.ts";
import type { Band } from "./renderer.ts";

/** Number of shades of a kind. */
export const SHADES = 3;
/** Number of names with a hue of their own where hues go by rank: the most distinct ones. */
export const RANKED = 7;
/** Variants: the shades of the kind, the hues, and the hue of all others. */
export const OTHER = SHADES + HUES.length;
/** Steps of a change, from much less to much more; their variants follow. */
const CHANGE_TONES = [8, 5, 3, 0, 3, 5, 8];
/** Smallest relative changes of the steps beside the middle one. */
const CHANGE_LIMITS = [0.05, 0.2, 0.5];
const NO_CHANGE = CHANGE_LIMITS.length;
/** Variant of the first step. */
export const FIRST_CHANGE = OTHER + 1;
const KIND_BITS = 3;
/** Minimum relative luminance at which black text has more contrast than white. */
const BRIGHT = 0.18;

/** Steps between an op's fill and its edge colour. */
export const TONES = 8;
/** Steps of the fill of an op from the background to its hue, and of the shades of a kind. */
const OP_HUE = 3;
const KIND_SHADES = [0, 2, 3];

export function colourCode(kind: number, variant = 0): number {
  return kind | (variant << KIND_BITS);
}

export function kindOf(code: number): Kind {
  return (code & ((1 << KIND_BITS) - 1)) as Kind;
}

/** Number of codes. */
export const CODES = colourCode(0, FIRST_CHANGE + CHANGE_TONES.length);

/** Variant of the colour of a change. */
export function changeVariant(before: number, after: number): number {
  const size = before === after ? 0 : Math.abs(after / before - 1);
  const steps = CHANGE_LIMITS.filter((limit) => size >= limit).length;
  return FIRST_CHANGE + NO_CHANGE + (after < before ? -steps : steps);
}

/** Colour of a change by its variant: blue for less, orange for more. */
export function changeColour(palette: Palette, variant: number): string {
  const step = variant - FIRST_CHANGE;
  return tones(palette.ops[KIND.other], step < NO_CHANGE ? palette.busy : HUES[1])[
    CHANGE_TONES[step]
  ];
}

/** Colour of a hue by number; of `OTHER - SHADES` for all others. */
export function hue(number: number): string {
  return HUES[number] ?? OTHER_HUE;
}

interface Colours {
  fill: string;
  edge: string;
  /** Text on the fill; null if its shape has no room for text. */
  text: string | null;
}

const known = new Map<string, string[]>();

/** Colours from one to another, in steps. */
export function tones(from: string, to: string): string[] {
  return memoize(known, from + to, () => {
    const [a, b] = [rgb(from), rgb(to)];
    return Array.from({ length: TONES + 1 }, (_, step) => {
      const mixed = a.map((share, i) =>
        Math.round(255 * (share + ((b[i] - share) * step) / TONES)),
      );
      return `#${mixed.map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    });
  });
}

const byPalette = new WeakMap<Palette, Map<string, Colours>>();

/** Colours of the events of a code in a band. */
export function coloursOf(band: Band, palette: Palette, code: number): Colours {
  const all = byPalette.get(palette) ?? new Map<string, Colours>();
  byPalette.set(palette, all);
  return memoize(all, band.look + code, () => makeColours(band.look, palette, code));
}

function makeColours(look: Band["look"], palette: Palette, code: number): Colours {
  const kind = kindOf(code);
  const variant = code >> KIND_BITS;
  const edge = palette.edges[kind];
  if (look === "api") return { fill: palette.api, edge, text: palette.text };
  if (look === "foot") return { fill: palette.kinds[kind], edge, text: null };
  const labelled = kind === KIND.kernel || kind === KIND.memcpy;
  if (variant < SHADES) {
    const shade = palette.shaded ? variant : 0;
    if (look === "op")
      return { fill: tones(palette.ops[kind], edge)[shade], edge, text: palette.text };
    const fill = tones(palette.kinds[kind], palette.text)[KIND_SHADES[shade]];
    const on = kind === KIND.kernel ? palette.onKernel : palette.onMemcpy;
    return { fill, edge, text: labelled ? on : null };
  }
  if (variant >= FIRST_CHANGE) {
    const fill = changeColour(palette, variant);
    return { fill, edge: fill, text: textOn(fill) };
  }
  const own = hue(variant - SHADES);
  if (look === "op")
    return { fill: tones(palette.background, own)[OP_HUE], edge: own, text: palette.text };
  return { fill: own, edge: own, text: labelled ? textOn(own) : null };
}

/** Black or white, whichever is easier to read on a colour. */
export function textOn(colour: string): string {
  const [r, g, b] = rgb(colour).map((share) => share ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > BRIGHT ? "#000000" : "#ffffff";
}
