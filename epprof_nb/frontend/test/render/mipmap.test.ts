import { describe, expect, test } from "vitest";
import type { RowSlice } from "../../src/data/events.ts";
import { mergeNarrow, mipLevel } from "../../src/render/mipmap.ts";
import { columns, events } from "../helpers.ts";

function row(acts: [number, number][]): RowSlice {
  return events([], acts).act.slices[0];
}

function rectangles({ set, first, end }: RowSlice) {
  return Array.from({ length: end - first }, (_, i) => ({
    start: set.start[first + i],
    dur: set.dur[first + i],
    members: set.members?.[first + i],
    cover: set.cover?.[first + i],
  }));
}

describe("a mip level", () => {
  test("merges the events that share a pixel, and no others", () => {
    const merged = mergeNarrow(
      row([
        [0, 2],
        [4, 4],
        [30, 1],
        [50, 40],
        [91, 1],
      ]),
      10,
    );
    expect(rectangles(merged)).toEqual([
      { start: 0, dur: 8, members: 2, cover: 6 },
      { start: 30, dur: 1, members: 1, cover: 1 },
      { start: 50, dur: 40, members: 1, cover: 40 },
      { start: 91, dur: 1, members: 1, cover: 1 },
    ]);
  });
  test("has the name and kind of the longest event", () => {
    const slice = row([
      [0, 2],
      [4, 4],
    ]);
    const kind = Float64Array.of(1, 2);
    const merged = mergeNarrow({ ...slice, set: columns(slice.set, { kind }) }, 10);
    expect(merged.set.kind?.[0]).toBe(2);
    expect(merged.set.name("name", 0)).toBe(slice.set.name("name", 1));
  });
  test("is the slice itself if no events share a pixel", () => {
    const slice = row([
      [0, 2],
      [400, 2],
    ]);
    expect(mipLevel(slice, 10)).toBe(slice);
  });
  test("serves an octave of zooms", () => {
    const slice = row([
      [0, 2],
      [4, 4],
    ]);
    expect(mipLevel(slice, 1000)).toBe(mipLevel(slice, 600));
    expect(mipLevel(slice, 1000)).not.toBe(mipLevel(slice, 2100));
  });
  test("contains only the highlighted events", () => {
    const slice = row([
      [0, 2],
      [4, 4],
      [9, 1],
    ]);
    const highlighted = Uint8Array.of(1, 0, 1);
    expect(rectangles(mipLevel(slice, 16, highlighted))).toEqual([
      { start: 0, dur: 10, members: 2, cover: 3 },
    ]);
    expect(rectangles(mipLevel(slice, 0.5, highlighted)).map((r) => r.start)).toEqual([0, 9]);
  });
  test("adds the coverage of its members", () => {
    const slice = row([
      [0, 4],
      [4, 4],
    ]);
    const cover = Float64Array.of(1, 3);
    const merged = mergeNarrow({ ...slice, set: columns(slice.set, { cover }) }, 10);
    expect(rectangles(merged)).toMatchObject([{ dur: 8, cover: 4 }]);
  });
  test("takes further events of its pixel, however long its members are together", () => {
    const slice = row([
      [0, 9],
      [5, 9],
      [8, 2],
    ]);
    expect(rectangles(mergeNarrow(slice, 10))).toEqual([
      { start: 0, dur: 14, members: 3, cover: 14 },
    ]);
  });
  test("has a few rectangles per pixel for any number of events", () => {
    const many = Array.from({ length: 50_000 }, (_, i): [number, number] => [i * 10, 4]);
    const merged = mipLevel(row(many), 500);
    expect(merged.end).toBeLessThanOrEqual(2 * 1000);
    expect(merged.set.cover?.reduce((sum, c) => sum + c, 0)).toBe(200_000);
  });
});
