import { describe, expect, test } from "vitest";
import { ticks } from "../../src/base/time_scale.ts";
import { Geometry } from "../../src/timeline/geometry.ts";
import { RepeatMarks } from "../../src/timeline/overlays/repeat_marks.ts";
import { rulerLabels, withoutReserved } from "../../src/timeline/ruler.ts";

const REPEATS = { unit: "repeat", first: 0 } as const;

function geometry(start: number, end: number, width: number): Geometry {
  return new Geometry({
    view: { start, end },
    width,
    height: 100,
    ruler: 22,
    head: 40,
    scroll: 0,
    sticky: [],
    lanes: [],
    // biome-ignore lint/suspicious/noExplicitAny: no colours are needed here
    palette: {} as any,
  });
}

test("labels of ticks give way to those of repeats", () => {
  expect(withoutReserved(["0 ms", "5 ms", "9 ms"], [0, 100, 200], [[90, 150]])).toEqual([
    "0 ms",
    "",
    "9 ms",
  ]);
});

test("a repeat is labelled where it starts, or at the left edge, if there is room", () => {
  const bounds: [number, number][] = [
    [0, 400],
    [400, 410],
    [410, 1000],
  ];
  const marks = new RepeatMarks(bounds, REPEATS);
  const texts = (at: Geometry): string[] => marks.labels(at).map(({ text }) => text);
  expect(texts(geometry(0, 1000, 1000))).toEqual(["repeat 0", "repeat 2"]);
  expect(texts(geometry(390, 420, 1000))).toEqual(["repeat 0", "repeat 1", "repeat 2"]);
  expect(marks.labels(geometry(500, 900, 1000))).toEqual([
    { repeat: 2, text: "repeat 2", left: 0, right: 60 },
  ]);
  expect(new RepeatMarks([], REPEATS).labels(geometry(0, 10, 100))).toEqual([]);
  const steps = new RepeatMarks(bounds, { unit: "step", first: 2 });
  const shown = steps.labels(geometry(0, 1000, 1000)).map(({ text }) => text);
  expect(shown).toEqual(["step 2", "step 4"]);
});

test("the line of a repeat without a label does not cross the times", () => {
  const lines: [number, number][] = [];
  const renderer = {
    boundary: (x: number, top: number) => lines.push([x, top]),
    tag: () => {},
  };
  const bounds: [number, number][] = [
    [0, 400],
    [400, 402],
    [402, 410],
    [410, 1000],
  ];
  const marks = new RepeatMarks(bounds, REPEATS);
  // biome-ignore lint/suspicious/noExplicitAny: the overlay uses these two methods only
  marks.under(renderer as any, geometry(0, 1000, 1000));
  // The second and third start within a few pixels: one line is enough.
  expect(lines).toEqual([
    [0, 0],
    [400, 17],
    [410, 0],
    [1000, 17],
  ]);
});

describe("the ruler", () => {
  const labels = (start: number, end: number): ReturnType<typeof rulerLabels> => {
    const { step, times } = ticks({ start, end }, 900);
    return rulerLabels(times, step, { start, end });
  };
  test("is relative to the profile's start", () => {
    expect(labels(0, 9e6)).toEqual({
      base: null,
      labels: ["0 ms", ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((ms) => `${ms} ms`)],
    });
  });
  test("is relative to a base if the window is small and late", () => {
    const deep = labels(1_234_012_300, 1_234_052_300);
    expect(deep.base).toBe("1.2340 s");
    expect(deep.labels[0]).toBe("+15 µs");
  });
  test.each([
    [1e9, 900],
    [99e9, 40],
    [5e12, 20],
    [999_999_990, 30],
  ])("distinguishes neighbours at %d ns in a window of %d ns", (start, length) => {
    const { labels: all } = labels(start, start + length);
    expect(all.length).toBeGreaterThan(2);
    expect(new Set(all).size).toBe(all.length);
  });
});
