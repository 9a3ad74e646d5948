import { describe, expect, test } from "vitest";
import { extremes, ranges, rate, rates, until, utilisation } from "../../src/data/counters.ts";
import { roundUp } from "../../src/timeline/counter_tracks.ts";

const numbers = (...values: number[]): Float64Array => Float64Array.from(values);

describe("a sum", () => {
  const curve = { t: numbers(10, 20, 30, 40), value: numbers(0, 10, 10, 20) };
  test.each([
    [10, 20, 1],
    [20, 30, 0],
    [0, 50, 0.4],
    [15, 35, 0.5],
    [40, 60, 0],
  ])("from %d to %d grows by %d a nanosecond", (start, end, share) => {
    expect(rate(curve, { start, end })).toBeCloseTo(share);
    expect(utilisation(curve, { start, end })).toBeCloseTo(share);
  });
  test("stays after its last point, and is nothing before its first", () => {
    expect(until(curve, 5)).toBe(0);
    expect(until(curve, 1e12)).toBe(20);
  });
  test.each([
    [0, 50, 10],
    [12, 38, 7],
    [35, 36, 4],
    [-9, 5, 3],
    [40, 90, 3],
  ])("from %d to %d is read pixel by pixel as stretch by stretch", (start, end, width) => {
    const found = rates(curve, { start, end }, width);
    const pixel = (end - start) / width;
    found.forEach((share, x) => {
      const stretch = { start: start + x * pixel, end: start + (x + 1) * pixel };
      expect(share).toBeCloseTo(rate(curve, stretch), 9);
    });
    expect(rates({ t: numbers(), value: numbers() }, { start, end }, width)).toEqual(
      new Float64Array(width),
    );
  });
  test("of nothing is nothing", () => {
    expect(rate({ t: numbers(), value: numbers() }, { start: 0, end: 9 })).toBe(0);
    expect(rate(curve, { start: 9, end: 9 })).toBe(0);
  });
});

describe("a level", () => {
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
  "the levels from %d to %d are read pixel by pixel as stretch by stretch",
  (start, end, width) => {
    const steps = {
      t: numbers(10, 20, 20.5, 30),
      low: numbers(1, 0, 3, 0),
      high: numbers(2, 5, 4, 0),
    };
    const { least, most } = ranges(steps, { start, end }, width);
    const pixel = (end - start) / width;
    for (let x = 0; x < width; x++) {
      const stretch = { start: start + x * pixel, end: start + (x + 1) * pixel };
      expect([least[x], most[x]]).toEqual(extremes(steps, stretch));
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
