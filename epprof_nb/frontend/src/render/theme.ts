// Palettes, the only place in TypeScript with colours; the CSS variables in styles/base.css and
// styles/contrast.css repeat them, as a test checks. Python's palette is epprof_nb/util/palette.py.
// The hues are those of Okabe and Ito, which colour-blind readers can distinguish.
//
// test/render/theme.test.ts checks: kernel, memcpy, memset and synchronization stay apart as seen
// without red, green or blue cones (Machado et al. 2009, full severity), the nearest two by 16 in
// CIELAB; kinds also differ in height and hatching. Text has a contrast of at least 4.5 to its
// background, of 7 with high contrast, where kinds also have 3 to the background.

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

const LIGHT: Palette = {
  background: "#ffffff",
  text: "#1b2430",
  faint: "#5b6675",
  line: "#e3e7ec",
  kinds: { 0: "#8b95a3", 1: "#0072b2", 2: "#e69f00", 3: "#009e73", 4: "#9aa3af", 5: "#cc79a7" },
  ops: { 0: "#e9ecf0", 1: "#c9e0f0", 2: "#fae4b8", 3: "#c2e8dc", 4: "#e9ecf0", 5: "#f2dbe7" },
  edges: { 0: "#a7b0bc", 1: "#3e93c4", 2: "#c98b00", 3: "#2fa583", 4: "#a7b0bc", 5: "#cc79a7" },
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
  kinds: { 0: "#7c8796", 1: "#56b4e9", 2: "#e69f00", 3: "#009e73", 4: "#7c8796", 5: "#cc79a7" },
  ops: { 0: "#2b323b", 1: "#1d3d54", 2: "#4c3a10", 3: "#15443a", 4: "#2b323b", 5: "#4a2f3f" },
  edges: { 0: "#5f6b7a", 1: "#4a9fd0", 2: "#b98516", 3: "#2ba583", 4: "#5f6b7a", 5: "#cc79a7" },
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
  kinds: { 0: "#4d4d4d", 1: "#00457c", 2: "#c97a00", 3: "#007250", 4: "#8a8a8a", 5: "#9b3f75" },
  ops: { 0: "#d9d9d9", 1: "#a9d3f5", 2: "#ffd37a", 3: "#93e0c4", 4: "#d9d9d9", 5: "#f3bfdb" },
  edges: { 0: "#4d4d4d", 1: "#00457c", 2: "#8a5300", 3: "#00573e", 4: "#4d4d4d", 5: "#9b3f75" },
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
  kinds: { 0: "#b3b3b3", 1: "#7fd0ff", 2: "#ffb000", 3: "#00b07a", 4: "#c4c4c4", 5: "#ff9fd0" },
  ops: { 0: "#3a3a3a", 1: "#004a75", 2: "#5c4200", 3: "#00523b", 4: "#3a3a3a", 5: "#66284a" },
  edges: { 0: "#b3b3b3", 1: "#7fd0ff", 2: "#ffb000", 3: "#00c98d", 4: "#b3b3b3", 5: "#ff9fd0" },
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
