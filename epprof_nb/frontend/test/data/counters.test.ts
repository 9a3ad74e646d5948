import { describe, expect, test } from "vitest";
import {
  extremes,
  meanRate,
  pixelRanges,
  pixelRates,
  utilisation,
  valueAt,
} from "../../src/data/counters.ts";
import { roundUp } from "../../src/timeline/counter_tracks.ts";

const numbers = (...values: number[]): Float64Array => Float64Array.from(values);

describe("a cumulative counter", () => {
  const curve = { t: numbers(10, 20, 30, 40), value: numbers(0, 10, 10, 20) };
  test.each([
    [10, 20, 1],
    [20, 30, 0],
    [0, 50, 0.4],
    [15, 35, 0.5],
    [40, 60, 0],
  ])("from %d to %d grows by %d per nanosecond", (start, end, share) => {
    expect(meanRate(curve, { start, end })).toBeCloseTo(share);
    expect(utilisation(curve, { start, end })).toBeCloseTo(share);
  });
  test("is constant after its last point, and 0 before its first", () => {
    expect(valueAt(curve, 5)).toBe(0);
    expect(valueAt(curve, 1e12)).toBe(20);
  });
  test.each([
    [0, 50, 10],
    [12, 38, 7],
    [35, 36, 4],
    [-9, 5, 3],
    [40, 90, 3],
  ])("from %d to %d has the same values per pixel as per range", (start, end, width) => {
    const rates = pixelRates(curve, { start, end }, width);
    const pixel = (end - start) / width;
    rates.forEach((share, x) => {
      const range = { start: start + x * pixel, end: start + (x + 1) * pixel };
      expect(share).toBeCloseTo(meanRate(curve, range), 9);
    });
    expect(pixelRates({ t: numbers(), value: numbers() }, { start, end }, width)).toEqual(
      new Float64Array(width),
    );
  });
  test("without points is zero", () => {
    expect(meanRate({ t: numbers(), value: numbers() }, { start: 0, end: 9 })).toBe(0);
    expect(meanRate(curve, { start: 9, end: 9 })).toBe(0);
  });
});

describe("a range counter", () => {
  const steps = { t: numbers(10, 20, 30), low: numbers(1, 0, 0), high: numbers(2, 5, 0) };
  test.each([
    [0, 5, [0, 0]],
    [0, 15, [0, 2]],
    [12, 18, [1, 2]],
    [12, 20, [1, 2]],
    [12, 21, [0, 5]],
    [35, 50, [0, 0]],
  ])("from %d to %d is within %j", (start, end, expected) => {
    expect(extremes(steps, { start, end })).toEqual(expected);
  });
});

test.each([
  [0, 50, 10],
  [5, 33, 50],
  [12, 21, 3],
  [31, 90, 3],
])(
  "range counters from %d to %d have the same values per pixel as per range",
  (start, end, width) => {
    const steps = {
      t: numbers(10, 20, 20.5, 30),
      low: numbers(1, 0, 3, 0),
      high: numbers(2, 5, 4, 0),
    };
    const { least, most } = pixelRanges(steps, { start, end }, width);
    const pixel = (end - start) / width;
    for (let x = 0; x < width; x++) {
      const range = { start: start + x * pixel, end: start + (x + 1) * pixel };
      expect([least[x], most[x]]).toEqual(extremes(steps, range));
    }
  },
);

test.each([
  [0, 0],
  [1, 1],
  [3, 5],
  [10, 10],
  [11, 20],
  [0.03, 0.05],
  [1.2e10, 2e10],
])("the scale for %d ends at %d", (value, top) => expect(roundUp(value)).toBe(top));
