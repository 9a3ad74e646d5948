// Palettes, the only place in TypeScript with colours; the CSS variables in styles/base.css and
// styles/contrast.css repeat them, as a test checks. Python's palette is epprof_nb/util/palette.py.
// The hues come from the palette of Okabe and Ito, which colour-blind readers can distinguish.
//
// test/render/palettes.test.ts checks: kernel, memcpy, memset and synchronization stay apart as seen
// without red, green or blue cones (Machado et al. 2009, full severity), the nearest two by 16 in
// CIELAB; kinds also differ in height and hatching. Text has a contrast of at least 4.5 to its
// background. With high contrast it has 7, and kinds have 3 to the background.

import type { Kind } from "../data/kinds.ts";

export interface Palette {
  background: string;
  text: string;
  faint: string;
  line: string;
  /** Fill of each kind of activity, see data/kinds.ts. */
  kinds: Record<Kind, string>;
  /** Fill and edge of an op by the kind it mostly launches. */
  ops: Record<Kind, string>;
  edges: Record<Kind, string>;
  /** Text on a kernel. */
  onKernel: string;
  /** Text on a memcpy. */
  onMemcpy: string;
  /** Whether names of a kind differ in shade; shades would cost contrast. */
  shaded: boolean;
  api: string;
  busy: string;
  select: string;
  /** Marked or measured time range, and text on it. */
  accent: string;
  onAccent: string;
}

/**
 * Hues of names: the palette of Okabe and Ito, with purple for black, and further hues as distinct
 * as possible. They match Python's palette.OPERATORS.
 */
export const HUES =
  "0072b2 d55e00 009e73 cc79a7 e69f00 56b4e9 7a5195 783018 4f1fbf ccc06c 3a5252 a8d5b5"
    .split(" ")
    .map((colour) => `#${colour}`);
/** Hue of all other names, and of ops if kernels have the hues. */
export const OTHER_HUE = "#8b95a3";

/** Colours in the order of the codes of the kinds. */
function byKind(colours: string): Record<Kind, string> {
  return colours.split(" ").map((colour) => `#${colour}`) as unknown as Record<Kind, string>;
}

const LIGHT: Palette = {
  background: "#ffffff",
  text: "#1b2430",
  faint: "#5b6675",
  line: "#e3e7ec",
  kinds: byKind("8b95a3 0072b2 e69f00 009e73 9aa3af cc79a7"),
  ops: byKind("e9ecf0 c9e0f0 fae4b8 c2e8dc e9ecf0 f2dbe7"),
  edges: byKind("a7b0bc 3e93c4 c98b00 2fa583 a7b0bc cc79a7"),
  onKernel: "#ffffff",
  onMemcpy: "#16120a",
  shaded: true,
  api: "#a7b0bc",
  busy: "#0072b2",
  select: "#1b2430",
  accent: "#0067a3",
  onAccent: "#ffffff",
};

const DARK: Palette = {
  background: "#14181d",
  text: "#e6eaf0",
  faint: "#9aa5b4",
  line: "#2a313a",
  kinds: byKind("7c8796 56b4e9 e69f00 009e73 7c8796 cc79a7"),
  ops: byKind("2b323b 1d3d54 4c3a10 15443a 2b323b 4a2f3f"),
  edges: byKind("5f6b7a 4a9fd0 b98516 2ba583 5f6b7a cc79a7"),
  onKernel: "#0b1016",
  onMemcpy: "#16120a",
  shaded: true,
  api: "#5d6978",
  busy: "#56b4e9",
  select: "#ffffff",
  accent: "#7cc4ee",
  onAccent: "#0b1016",
};

const LIGHT_CONTRAST: Palette = {
  background: "#ffffff",
  text: "#000000",
  faint: "#333333",
  line: "#767676",
  kinds: byKind("4d4d4d 00457c c97a00 007250 8a8a8a 9b3f75"),
  ops: byKind("d9d9d9 a9d3f5 ffd37a 93e0c4 d9d9d9 f3bfdb"),
  edges: byKind("4d4d4d 00457c 8a5300 00573e 4d4d4d 9b3f75"),
  onKernel: "#ffffff",
  onMemcpy: "#000000",
  shaded: false,
  api: "#949494",
  busy: "#00457c",
  select: "#000000",
  accent: "#00457c",
  onAccent: "#ffffff",
};

const DARK_CONTRAST: Palette = {
  background: "#000000",
  text: "#ffffff",
  faint: "#d0d0d0",
  line: "#808080",
  kinds: byKind("b3b3b3 7fd0ff ffb000 00b07a c4c4c4 ff9fd0"),
  ops: byKind("3a3a3a 004a75 5c4200 00523b 3a3a3a 66284a"),
  edges: byKind("b3b3b3 7fd0ff ffb000 00c98d b3b3b3 ff9fd0"),
  onKernel: "#000000",
  onMemcpy: "#000000",
  shaded: false,
  api: "#4d4d4d",
  busy: "#7fd0ff",
  select: "#ffffff",
  accent: "#ffd75e",
  onAccent: "#000000",
};

export type Theme = "light" | "dark";
export const PALETTES = { LIGHT, DARK, LIGHT_CONTRAST, DARK_CONTRAST };

const MORE_CONTRAST = "(prefers-contrast: more), (forced-colors: active)";
let contrast: MediaQueryList | undefined;

/** Media query of readers who prefer high contrast or set their own colours. */
export function moreContrast(): MediaQueryList {
  contrast ??= matchMedia(MORE_CONTRAST);
  return contrast;
}

export function palette(theme: Theme, high = moreContrast().matches): Palette {
  if (theme === "dark") return high ? DARK_CONTRAST : DARK;
  return high ? LIGHT_CONTRAST : LIGHT;
}

const parsed = new Map<string, [number, number, number]>();

/** Parse a colour written as #rrggbb into shares of red, green and blue. */
export function rgb(colour: string): [red: number, green: number, blue: number] {
  let shares = parsed.get(colour);
  if (!shares) {
    const at = (i: number): number => Number.parseInt(colour.slice(i, i + 2), 16) / 255;
    shares = [at(1), at(3), at(5)];
    parsed.set(colour, shares);
  }
  return shares;
}
