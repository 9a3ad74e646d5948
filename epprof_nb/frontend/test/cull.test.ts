import { describe, expect, test } from "vitest";
import { firstAbove, Rects, rects, visible } from "../src/cull.ts";
import type { Columns } from "../src/renderer.ts";
import { events } from "./helpers.ts";

const view = { start: 0, end: 1000 };

function drawn(acts: [number, number][], window = view, width = 100, only?: Uint8Array) {
  const out = new Rects();
  rects(events([], acts).act.slices[0], window, width, out, only);
  return Array.from({ length: out.length }, (_, i) => ({
    x: out.x[i],
    width: out.width[i],
    cover: out.cover[i],
    event: out.event[i],
  }));
}

function columns(set: Columns): Columns {
  const { prefix, start, dur, reach, kind } = set;
  return { prefix, start, dur, reach, kind, name: () => "" };
}

test("the first above a limit is found by halves", () => {
  const values = Float64Array.of(1, 2, 2, 5);
  expect(firstAbove(values, 2, 0, 4)).toBe(3);
  expect(firstAbove(values, 9, 0, 4)).toBe(4);
  expect(firstAbove(values, 0, 0, 4)).toBe(0);
});

describe("culling", () => {
  test("keeps what reaches into the window, however early it began", () => {
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
    const [first, end] = visible(slice, { start: 450, end: 600 });
    expect(first).toBe(0);
    expect(end).toBe(4);
  });
  test("leaves out what is before and after", () => {
    expect(
      drawn(
        [
          [0, 10],
          [500, 10],
          [900, 10],
        ],
        { start: 400, end: 600 },
      ).map((r) => r.event),
    ).toEqual([1]);
  });
});

describe("merging", () => {
  test("gives thin events a pixel", () => {
    expect(drawn([[500, 0]])).toEqual([{ x: 50, width: 1, cover: 1, event: 0 }]);
  });
  test("joins neighbours within a pixel and tells how much they cover", () => {
    const [only] = drawn([
      [500, 1],
      [502, 2],
      [505, 1],
    ]);
    expect(only.event).toBe(1);
    expect(only.cover).toBeCloseTo(0.4);
  });
  test("adds what events cover, where they stand for several", () => {
    const { set } = events(
      [],
      [
        [500, 4],
        [504, 4],
        [700, 200],
      ],
    ).act.slices[0];
    const cover = Float64Array.of(1, 3, 50);
    const out = new Rects();
    rects({ set: { ...columns(set), cover }, first: 0, end: 3 }, view, 100, out);
    expect(out.length).toBe(2);
    expect(out.cover[0]).toBeCloseTo(0.4);
    expect(out.cover[1]).toBeCloseTo(0.25);
  });
  test("keeps apart what is a pixel apart", () => {
    expect(
      drawn([
        [500, 1],
        [530, 1],
      ]),
    ).toHaveLength(2);
  });
  test("never joins a wide event", () => {
    const found = drawn([
      [490, 1],
      [500, 100],
      [601, 1],
    ]);
    expect(found.map((r) => r.event)).toEqual([0, 1, 2]);
    expect(found[1]).toMatchObject({ x: 50, width: 10 });
  });
  test("makes few rectangles of many events", () => {
    const many = Array.from({ length: 50_000 }, (_, i): [number, number] => [i * 10, 4]);
    const found = drawn(many, { start: 0, end: 500_000 }, 1000);
    expect(found.length).toBeLessThanOrEqual(1001);
    expect(found[500].cover).toBeCloseTo(0.4, 1);
  });
  test("takes only what is asked for", () => {
    const found = drawn(
      [
        [500, 1],
        [501, 1],
        [502, 1],
      ],
      view,
      100,
      Uint8Array.of(0, 1, 0),
    );
    expect(found).toMatchObject([{ event: 1 }]);
  });
  test("clips what is wider than the window", () => {
    const [only] = drawn([[0, 1e9]], { start: 5e8, end: 5e8 + 100 });
    expect(only.x).toBe(-2);
    expect(only.width).toBe(104);
  });
});
