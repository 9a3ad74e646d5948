// Colours for the canvas. Hues are Okabe and Ito's, told apart by colour-blind readers too.

import type { Kind } from "./model.ts";

export interface Palette {
  background: string;
  text: string;
  faint: string;
  line: string;
  /** Fill of each kind of activity. */
  kinds: Record<Kind, string>;
  /** Fill and edge of an op by the kind it mostly launches. */
  ops: Record<Kind, string>;
  edges: Record<Kind, string>;
  /** Text on a kernel. */
  onKind: string;
  /** Text on a copy. */
  onCopy: string;
  api: string;
  busy: string;
  select: string;
  /** What the reader marks: a selected or measured stretch; and text on it. */
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
  onKind: "#ffffff",
  onCopy: "#16120a",
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
  kinds: { 0: "#7c8796", 1: "#56b4e9", 2: "#e69f00", 3: "#2bbd93", 4: "#7c8796", 5: "#cc79a7" },
  ops: { 0: "#2b323b", 1: "#1d3d54", 2: "#4c3a10", 3: "#15443a", 4: "#2b323b", 5: "#4a2f3f" },
  edges: { 0: "#5f6b7a", 1: "#4a9fd0", 2: "#b98516", 3: "#2ba583", 4: "#5f6b7a", 5: "#cc79a7" },
  onKind: "#0b1016",
  onCopy: "#16120a",
  api: "#5f6b7a",
  busy: "#56b4e9",
  select: "#ffffff",
  accent: "#7cc4ee",
  onAccent: "#0b1016",
};

export type Theme = "light" | "dark";

export function palette(theme: Theme): Palette {
  return theme === "dark" ? DARK : LIGHT;
}

const parsed = new Map<string, [number, number, number]>();

/** A colour written as #rrggbb, as shares of red, green and blue. */
export function rgb(colour: string): [red: number, green: number, blue: number] {
  let shares = parsed.get(colour);
  if (!shares) {
    const at = (i: number): number => Number.parseInt(colour.slice(i, i + 2), 16) / 255;
    shares = [at(1), at(3), at(5)];
    parsed.set(colour, shares);
  }
  return shares;
}
