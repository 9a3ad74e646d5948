import { describe, expect, test } from "vitest";
import { KIND, type Kind } from "../../src/data/kinds.ts";
import {
  changeColour,
  changeVariant,
  colourCode,
  coloursOf,
} from "../../src/render/event_colours.ts";
import { HUES, PALETTES, type Palette, rgb } from "../../src/render/palettes.ts";

type Triple = [number, number, number];
type Matrix = [Triple, Triple, Triple];

function linear(colour: string): Triple {
  return rgb(colour).map((c) =>
    c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4,
  ) as Triple;
}

function times(matrix: Matrix, v: Triple): Triple {
  return matrix.map((row) => row[0] * v[0] + row[1] * v[1] + row[2] * v[2]) as Triple;
}

/** Contrast of two colours as WCAG 2 defines it. */
function contrast(a: string, b: string): number {
  const light = (c: string): number =>
    times(
      [
        [0.2126, 0.7152, 0.0722],
        [0, 0, 0],
        [0, 0, 0],
      ],
      linear(c),
    )[0];
  const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

// Colours seen without one kind of cones, on linear RGB: Machado, Oliveira and Fernandes 2009.
const SEEN: Record<string, Matrix> = {
  "with all cones": [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  "without red cones": [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  "without green cones": [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  "without blue cones": [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
};

const XYZ: Matrix = [
  [0.4124, 0.3576, 0.1805],
  [0.2126, 0.7152, 0.0722],
  [0.0193, 0.1192, 0.9505],
];

function lab(seen: Triple): Triple {
  const [x, y, z] = times(XYZ, seen.map((c) => Math.min(Math.max(c, 0), 1)) as Triple);
  const f = (t: number): number => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
  const [fx, fy, fz] = [f(x / 0.9505), f(y), f(z / 1.089)];
  return [116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)];
}

function apart(a: string, b: string, seen: Matrix): number {
  const [p, q] = [a, b].map((c) => lab(times(seen, linear(c))));
  return Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}

const palettes = Object.entries(PALETTES) as [string, Palette][];

const DISTINCT: Kind[] = [KIND.kernel, KIND.memcpy, KIND.memset, KIND.synchronization];

describe.each(palettes)("the palette %s", (name, palette) => {
  const high = name.endsWith("CONTRAST");
  const least = high ? 7 : 4.5;

  test("has legible text", () => {
    expect(contrast(palette.text, palette.background)).toBeGreaterThanOrEqual(least);
    expect(contrast(palette.faint, palette.background)).toBeGreaterThanOrEqual(least);
    expect(contrast(palette.onKernel, palette.kinds[KIND.kernel])).toBeGreaterThanOrEqual(4.5);
    expect(contrast(palette.onMemcpy, palette.kinds[KIND.memcpy])).toBeGreaterThanOrEqual(4.5);
    expect(contrast(palette.text, palette.api)).toBeGreaterThanOrEqual(4.5);
    expect(contrast(palette.onAccent, palette.accent)).toBeGreaterThanOrEqual(4.5);
    for (const kind of Object.values(KIND))
      expect(contrast(palette.text, palette.ops[kind])).toBeGreaterThanOrEqual(least);
  });

  test.each(Object.entries(SEEN))("has distinguishable kinds %s", (_, seen) => {
    for (const a of DISTINCT)
      for (const b of DISTINCT)
        if (a < b)
          expect(apart(palette.kinds[a], palette.kinds[b], seen), `${a} ${b}`).toBeGreaterThan(15);
  });
});

// Steps of changes: neighbours may be near, but less and more are never mistaken for each other.
test.each(palettes)("the colours of changes of %s tell less from more", (_, palette) => {
  const [less, more] = [
    [0, 60, 90],
    [160, 130, 110],
  ].map((all) => all.map((after) => changeColour(palette, changeVariant(100, after))));
  const none = changeColour(palette, changeVariant(1, 1));
  for (const seen of Object.values(SEEN)) {
    less.forEach((colour, i) => {
      expect(apart(colour, more[i], seen)).toBeGreaterThan(20);
      for (const other of more) expect(apart(colour, other, seen)).toBeGreaterThan(15);
    });
    for (const colour of [...less, ...more]) expect(apart(colour, none, seen)).toBeGreaterThan(10);
  }
  const band = { y: 0, height: 20, look: "op" } as const;
  for (const after of [0, 60, 90, 100, 110, 130, 160]) {
    const { fill, text } = coloursOf(band, palette, colourCode(0, changeVariant(100, after)));
    expect(contrast(text ?? "", fill), fill).toBeGreaterThanOrEqual(4.5);
  }
});

// Hues of names: the nearest two, blue and purple without red cones, are 9 apart.
test.each(Object.entries(SEEN))("the hues of names are distinguishable %s", (_, seen) => {
  HUES.forEach((a, i) => {
    for (const b of HUES.slice(i + 1)) expect(apart(a, b, seen), `${a} ${b}`).toBeGreaterThan(9);
  });
});

test.each(palettes.filter(([name]) => name.endsWith("CONTRAST")))(
  "the kinds of %s stand out from the background",
  (_, palette) => {
    for (const kind of Object.values(KIND))
      expect(contrast(palette.kinds[kind], palette.background)).toBeGreaterThanOrEqual(3);
  },
);

describe("the CSS variables have the palettes' colours", () => {
  const sheets = import.meta.glob("../../src/styles/*.css", {
    query: "?raw",
    import: "default",
    eager: true,
  });
  const sheet = (name: string): string => sheets[`../../src/styles/${name}.css`];
  /** Variables of the rules of a selector. */
  const variables = (css: string, selector: string): Record<string, string> => {
    const start = css.indexOf(`${selector} {`);
    const block = css.slice(start, css.indexOf("}", start));
    return Object.fromEntries(
      [...block.matchAll(/--([a-z]+): (#[0-9a-f]{6});/g)].map(([, k, v]) => [k, v]),
    );
  };
  const LIGHT = variables(sheet("base"), ".ep-viewer");
  const DARK = { ...LIGHT, ...variables(sheet("base"), '.ep-viewer[data-theme="dark"]') };
  const more = (selector: string): Record<string, string> => variables(sheet("contrast"), selector);
  const LIGHT_CONTRAST = { ...LIGHT, ...more(".ep-viewer") };
  const DARK_CONTRAST = {
    ...DARK,
    ...more(".ep-viewer"),
    ...more('.ep-viewer[data-theme="dark"]'),
  };
  const css: Record<string, Record<string, string>> = {
    LIGHT,
    DARK,
    LIGHT_CONTRAST,
    DARK_CONTRAST,
  };

  test.each(palettes)("%s", (name, palette) => {
    const { bg, text, faint, line, accent, bar, memcpy, memset, synchronization } = css[name];
    expect([bg, text, faint, line, accent]).toEqual([
      palette.background,
      palette.text,
      palette.faint,
      palette.line,
      palette.accent,
    ]);
    expect([bar, bar, memcpy, memset, synchronization]).toEqual([
      palette.busy,
      ...[KIND.kernel, KIND.memcpy, KIND.memset, KIND.synchronization].map(
        (kind) => palette.kinds[kind],
      ),
    ]);
  });
});
