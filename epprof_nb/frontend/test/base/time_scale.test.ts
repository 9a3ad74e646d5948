import { describe, expect, test } from "vitest";
import {
  clamp,
  pan,
  ticks,
  toPixel,
  toTime,
  withContext,
  zoom,
} from "../../src/base/time_scale.ts";

const whole = { start: 0, end: 1e9 };

describe("a window", () => {
  test("maps times to pixels and back", () => {
    const view = { start: 100, end: 300 };
    expect(toPixel(200, view, 800)).toBe(400);
    expect(toTime(400, view, 800)).toBe(200);
  });
  test("keeps the time under the pointer when it zooms", () => {
    const view = zoom(whole, whole, 0.5, 250, 1000);
    expect(toTime(250, view, 1000)).toBeCloseTo(2.5e8);
    expect(view.end - view.start).toBeCloseTo(5e8);
  });
  test("never leaves the profile", () => {
    expect(zoom(whole, whole, 4, 10, 1000)).toEqual(whole);
    expect(pan({ start: 0, end: 1e8 }, whole, -500, 1000)).toEqual({ start: 0, end: 1e8 });
    expect(pan({ start: 8e8, end: 1e9 }, whole, 1e6, 1000).end).toBe(1e9);
    expect(clamp({ start: -5, end: 3e9 }, whole)).toEqual(whole);
  });
  test("has a shortest length", () => {
    let view = whole;
    for (let i = 0; i < 200; i++) view = zoom(view, whole, 0.5, 500, 1000);
    expect(view.end - view.start).toBeCloseTo(20);
  });
  test("has a margin around a range, even an empty one", () => {
    const view = withContext({ start: 5e8, end: 5e8 }, whole);
    expect(view.start).toBeLessThan(5e8);
    expect(view.end).toBeGreaterThan(5e8);
  });
});

describe("a ruler", () => {
  test("has round steps within the window", () => {
    const { step, times } = ticks({ start: 3e6, end: 98e6 }, 900);
    expect(step).toBe(1e7);
    expect(times).toEqual([1e7, 2e7, 3e7, 4e7, 5e7, 6e7, 7e7, 8e7, 9e7]);
  });
});
