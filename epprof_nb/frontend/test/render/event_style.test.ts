import { expect, test } from "vitest";
import { TONES, tones } from "../../src/render/event_colours.ts";
import { EDGE, edgeShare, TONE, toneOf } from "../../src/render/event_style.ts";

test("an edge grows with the rectangle, and never jumps", () => {
  expect(edgeShare(EDGE.from)).toBe(0);
  expect(edgeShare(EDGE.to)).toBe(1);
  expect(edgeShare(500)).toBe(1);
  for (let wide = 0; wide < 20; wide += 0.5)
    expect(edgeShare(wide + 0.5) - edgeShare(wide)).toBeLessThan(0.1);
});

test("an op that stands alone has a tone, a wide one an edge", () => {
  expect(toneOf(1, 50, 50)).toBeCloseTo(TONE.most, 1);
  expect(toneOf(1, 0, 0)).toBeCloseTo(TONE.least, 1);
  // Of two side by side each is half alone; one that begins before the last ended has no gap.
  expect(toneOf(1, -30, 50)).toBeCloseTo((TONE.least + TONE.most) / 2, 1);
  expect(toneOf(EDGE.to, 50, 50)).toBe(0);
});

test("tones lead from an op's colour to its edge's", () => {
  const all = tones("#ffffff", "#000080");
  expect([all[0], all[TONES / 2], all[TONES]]).toEqual(["#ffffff", "#8080c0", "#000080"]);
  expect(toneOf(1, 3, 50) * TONES).toBe(Math.round(toneOf(1, 3, 50) * TONES));
});
