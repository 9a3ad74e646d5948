import { expect, test } from "vitest";
import { EDGE, edged, TONE, TONES, toned, tones } from "../src/shapes.ts";

test("an edge grows with the rectangle, and never jumps", () => {
  expect(edged(EDGE.from)).toBe(0);
  expect(edged(EDGE.to)).toBe(1);
  expect(edged(500)).toBe(1);
  for (let wide = 0; wide < 20; wide += 0.5)
    expect(edged(wide + 0.5) - edged(wide)).toBeLessThan(0.1);
});

test("what stands alone is told by its tone, what has an edge by that", () => {
  expect(toned(1, 50, 50)).toBeCloseTo(TONE.most, 1);
  expect(toned(1, 0, 0)).toBeCloseTo(TONE.least, 1);
  // Of two side by side each is half alone; one that begins before the last ended has no gap.
  expect(toned(1, -30, 50)).toBeCloseTo((TONE.least + TONE.most) / 2, 1);
  expect(toned(EDGE.to, 50, 50)).toBe(0);
});

test("tones lead from an op's colour to its edge's", () => {
  const all = tones("#ffffff", "#000080");
  expect([all[0], all[TONES / 2], all[TONES]]).toEqual(["#ffffff", "#8080c0", "#000080"]);
  expect(toned(1, 3, 50) * TONES).toBe(Math.round(toned(1, 3, 50) * TONES));
});
