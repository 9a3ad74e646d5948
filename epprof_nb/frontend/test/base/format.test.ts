import { describe, expect, test } from "vitest";
import vectors from "../../../../tests/data/number_format.json";
import { count, duration, percent, shorten, size } from "../../src/base/format.ts";

describe.each([
  ["percent", percent, vectors.percent],
  ["duration", duration, vectors.duration],
  ["size", size, vectors.size],
  ["count", count, vectors.count],
])("%s follows the shared vectors", (_, format, cases) => {
  test.each(cases as [number, string][])("%d is %s", (value, text) => {
    expect(format(value)).toBe(text);
  });
});

test("integers keep every digit beyond 2**53", () => {
  expect(count(9_007_199_254_740_993n)).toBe("9,007,199,254,740,993");
});

describe("names", () => {
  test.each(vectors.shorten as [string, number, string][])(
    "%j in %d characters",
    (text, limit, short) => {
      expect(shorten(text, limit)).toBe(short);
    },
  );
});
