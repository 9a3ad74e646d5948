import { describe, expect, test } from "vitest";
import { MemoryCurve } from "../../src/data/memory_curve.ts";
import { Bundle } from "../../src/data/wire_format.ts";
import { widestRun } from "../../src/timeline/memory_track.ts";
import { encode } from "../helpers.ts";

const f64 = (...values: number[]) => ({ tag: "f64" as const, values });

function curveOf(t: number[], at: number[], low: number[], ...parts: number[][]): MemoryCurve {
  const columns = {
    "counter.0.t": f64(...t),
    "counter.0.at": f64(...at),
    "counter.0.low": f64(...low),
    ...Object.fromEntries(parts.map((part, i) => [`counter.0.part.${i}`, f64(...part)])),
  };
  return new MemoryCurve(new Bundle(encode({}, columns)), 0, parts.length);
}

describe("memory in use over time", () => {
  const exact = curveOf(
    [10, 20, 25, 40],
    [10, 20, 25, 40],
    [5, 9, 6, 0],
    [5, 5, 5, 0],
    [0, 4, 1, 0],
  );
  test("has the point of the greatest sum in each pixel", () => {
    const points = exact.pixels({ start: 0, end: 50 }, 5);
    expect([...points]).toEqual([-1, 0, 1, 2, 3]);
    expect([...exact.upTo(1, points)]).toEqual([0, 5, 9, 6, 0]);
    expect([...exact.upTo(0, points)]).toEqual([0, 5, 5, 5, 0]);
    // One pixel: its peak is not hidden by the values around it.
    expect([...exact.upTo(1, exact.pixels({ start: 0, end: 50 }, 1))]).toEqual([9]);
  });
  test("keeps the value from before the window", () => {
    expect([...exact.pixels({ start: 26, end: 36 }, 2)]).toEqual([2, 2]);
  });
  test.each([
    [12, 18, { at: 12, parts: [5, 0], low: 5, high: 5 }],
    [12.4, 12.6, { at: 13, parts: [5, 0], low: 5, high: 5 }],
    [18, 30, { at: 20, parts: [5, 4], low: 5, high: 9 }],
    [60, 70, { at: 60, parts: [0, 0], low: 0, high: 0 }],
  ])("from %d to %d has its greatest sum", (start, end, expected) => {
    expect(exact.greatest({ start, end })).toEqual(expected);
  });
  test("tells the time of a sum between two points", () => {
    const merged = curveOf([0, 100], [70, 100], [2, 3], [8, 3]);
    expect(merged.greatest({ start: 10, end: 20 })).toEqual({
      at: 70,
      parts: [8],
      low: 2,
      high: 8,
    });
  });
  test("is empty without points", () => {
    const none = curveOf([], [], [], []);
    expect([...none.upTo(0, none.pixels({ start: 0, end: 9 }, 2))]).toEqual([0, 0]);
    expect(none.greatest({ start: 0, end: 9 }).high).toBe(0);
  });
});

describe("the place of an area's name", () => {
  const of = (...values: number[]): Float64Array => Float64Array.from(values);
  test("is the widest run in which the area is thick enough", () => {
    const bottom = of(0, 0, 0, 0, 0, 4, 4);
    const top = of(9, 1, 9, 9, 8, 9, 9);
    expect(widestRun(bottom, top, 5, 2)).toEqual({ first: 2, end: 5, bottom: 0, top: 8 });
  });
  test("is nowhere if no run has room", () => {
    expect(widestRun(of(0, 0), of(9, 9), 5, 3)).toBeNull();
    expect(widestRun(of(0, 6), of(6, 12), 4, 2)).toBeNull();
  });
});
