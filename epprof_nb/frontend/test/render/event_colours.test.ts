import { describe, expect, test } from "vitest";
import { KIND } from "../../src/data/kinds.ts";
import {
  CODES,
  colourCode,
  coloursOf,
  kindOf,
  OTHER,
  SHADES,
} from "../../src/render/event_colours.ts";
import { HUES, PALETTES, type Palette, rgb } from "../../src/render/palettes.ts";
import type { Band } from "../../src/render/renderer.ts";

function luminance(colour: string): number {
  const [r, g, b] = rgb(colour).map((c) =>
    c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

const band = (look: Band["look"]): Band => ({ y: 0, height: 20, look });
const variants = Array.from({ length: OTHER + 1 }, (_, variant) => variant);

test("a code has the kind, and there is room for every variant of every kind", () => {
  const codes = variants.flatMap((variant) =>
    Object.values(KIND).map((kind) => colourCode(kind, variant)),
  );
  expect(new Set(codes).size).toBe(codes.length);
  expect(Math.max(...codes)).toBeLessThan(CODES);
  expect(CODES).toBeLessThanOrEqual(256);
  for (const kind of Object.values(KIND)) expect(kindOf(colourCode(kind, OTHER))).toBe(kind);
});

describe.each(Object.entries(PALETTES) as [string, Palette][])("with %s", (name, palette) => {
  const of = (look: Band["look"], kind: number, variant: number) =>
    coloursOf(band(look), palette, colourCode(kind, variant));

  test("text is legible on every colour", () => {
    for (const variant of variants)
      for (const kind of [KIND.kernel, KIND.memcpy])
        for (const look of ["op", "activity"] as const) {
          // Copies have no shades.
          if (look === "activity" && kind === KIND.memcpy && variant > 0 && variant < SHADES)
            continue;
          const { fill, text } = of(look, kind, variant);
          expect(contrast(text ?? "", fill), `${look} ${kind} ${variant}`).toBeGreaterThanOrEqual(
            4.5,
          );
        }
  });
  test("neighbours of a kind differ in shade, except in high contrast", () => {
    const fills = [0, 1, 2].map((shade) => of("activity", KIND.kernel, shade).fill);
    expect(fills[0]).toBe(palette.kinds[KIND.kernel]);
    expect(new Set(fills).size).toBe(name.endsWith("CONTRAST") ? 1 : SHADES);
  });
  test("names have hues of their own, and ops paler ones", () => {
    const fills = variants
      .slice(SHADES)
      .map((variant) => of("activity", KIND.kernel, variant).fill);
    expect(new Set(fills).size).toBe(HUES.length + 1);
    for (const [i, fill] of fills.entries())
      expect(of("op", KIND.kernel, SHADES + i).fill).not.toBe(fill);
  });
});
