import { describe, expect, test } from "vitest";
import { firstAbove } from "../../src/base/binary_search.ts";
import type { RowSlice } from "../../src/data/events.ts";
import { visibleEvents } from "../../src/data/visible_events.ts";
import { kindOf } from "../../src/render/event_colours.ts";
import { opacity } from "../../src/render/event_style.ts";
import { buildVisibleRects, VisibleRects } from "../../src/render/narrow_events.ts";
import { columns, events } from "../helpers.ts";

const view = { start: 0, end: 1000 };

function drawn(slice: RowSlice, window = view, width = 100, unit = 1) {
  const out = new VisibleRects();
  buildVisibleRects(slice, window, width, unit, out);
  return Array.from({ length: out.length }, (_, i) => ({
    x: out.x[i],
    width: out.width[i],
    alpha: out.alpha[i],
    kind: kindOf(out.code[i]),
  }));
}

function row(acts: [number, number][]): RowSlice {
  return events([], acts).act.slices[0];
}

test("the first value above a limit is found by binary search", () => {
  const values = Float64Array.of(1, 2, 2, 5);
  expect(firstAbove(values, 2, 0, 4)).toBe(3);
  expect(firstAbove(values, 9, 0, 4)).toBe(4);
  expect(firstAbove(values, 0, 0, 4)).toBe(0);
});

describe("culling", () => {
  test("keeps events that reach into the window, however early they began", () => {
    const slice = events(
      [],
      [
        [0, 900],
        [10, 5],
        [100, 5],
        [500, 10],
        [990, 5],
      ],
    ).act.slices[0];
    const [first, end] = visibleEvents(slice, { start: 450, end: 600 });
    expect(first).toBe(0);
    expect(end).toBe(4);
  });
  test("drops events before and after", () => {
    const found = drawn(
      row([
        [0, 10],
        [500, 10],
        [900, 10],
      ]),
      { start: 400, end: 600 },
    );
    expect(found).toEqual([{ x: 50, width: 5, alpha: 1, kind: 1 }]);
  });
  test("clips events wider than the window", () => {
    const [only] = drawn(row([[0, 1e9]]), { start: 5e8, end: 5e8 + 100 });
    expect(only.x).toBe(-2);
    expect(only.width).toBe(104);
  });
});

describe("an event thinner than a pixel", () => {
  test("has a whole pixel if it stands alone", () => {
    expect(drawn(row([[500, 0]]))).toEqual([{ x: 50, width: 1, alpha: 1, kind: 1 }]);
  });
  test("shares a pixel by coverage", () => {
    const third = row([
      [490, 10],
      [500, 2],
      [506, 2],
      [510, 10],
    ]);
    const pixel = drawn(third).find(({ x }) => x === 50);
    // 4 of its 10 ns are covered.
    expect(pixel?.alpha).toBeCloseTo(opacity(0.4), 5);
  });
  test("leaves idle pixels idle", () => {
    const found = drawn(
      row([
        [500, 1],
        [530, 1],
      ]),
    );
    expect(found.map(({ x }) => x)).toEqual([50, 53]);
  });
  test("adds up over pixels, wherever they begin", () => {
    const many = Array.from({ length: 2000 }, (_, i): [number, number] => [i * 5, 2]);
    for (const start of [1000, 1003, 1007.5]) {
      const found = drawn(row(many), { start, end: start + 1000 });
      expect(found.reduce((sum, { width }) => sum + width, 0)).toBe(100);
      for (const { alpha } of found) expect(alpha).toBeCloseTo(opacity(0.4), 1);
      expect(found.length).toBeLessThan(10);
    }
  });
  test("shows the kind that covers most of the pixel", () => {
    const slice = row([
      [500, 2],
      [502, 6],
      [508, 2],
      [510, 10],
    ]);
    const kind = Float64Array.of(1, 2, 3, 1);
    const [pixel] = drawn({ ...slice, set: columns(slice.set, { kind }) });
    expect(pixel).toMatchObject({ x: 50, kind: 2 });
    expect(pixel.alpha).toBeCloseTo(1, 5);
  });
});

test("a merged rectangle is as opaque as its coverage", () => {
  const slice = row([
    [100, 200],
    [500, 200],
  ]);
  const cover = Float64Array.of(200, 50);
  const found = drawn({ ...slice, set: columns(slice.set, { cover }) });
  expect(found.map(({ alpha }) => alpha)).toEqual([1, Math.fround(opacity(0.25))]);
});

test("on a screen with two pixels per CSS pixel, the minimum width is two", () => {
  const found = drawn(row([[500, 0]]), view, 200, 2);
  expect(found).toEqual([{ x: 100, width: 2, alpha: 1, kind: 1 }]);
});

test("pixels that narrow events share keep nothing of the row before", () => {
  const out = new VisibleRects();
  for (const [dur, kind] of [
    [9, 1],
    [4, 2],
  ]) {
    const slice = row([[0, dur]]);
    const set = columns(slice.set, { kind: Float64Array.of(kind) });
    buildVisibleRects({ ...slice, set }, view, 100, 1, out);
    expect(kindOf(out.code[0])).toBe(kind);
  }
});
