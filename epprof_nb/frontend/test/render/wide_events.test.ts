import { expect, test } from "vitest";
import { WideEvents } from "../../src/render/wide_events.ts";

function found(values: Float64Array, first: number, end: number, least: number): number[] {
  const hits: number[] = [];
  new WideEvents(values).each(first, end, least, (i) => hits.push(i));
  return hits;
}

test("finds the values of at least a size in any range", () => {
  // A fixed sequence that looks random: most small, a few large.
  let state = 7;
  const values = Float64Array.from({ length: 5000 }, () => {
    state = (state * 48271) % 2147483647;
    return state % 100 === 0 ? 1000 + (state % 7) : state % 50;
  });
  for (const [first, end] of [
    [0, 5000],
    [1, 4999],
    [31, 33],
    [32, 1056],
    [1000, 1001],
    [40, 40],
  ]) {
    const expected: number[] = [];
    for (let i = first; i < end; i++) if (values[i] >= 1000) expected.push(i);
    expect(found(values, first, end, 1000)).toEqual(expected);
  }
});

test("reads only a few of many values", () => {
  const values = new Float64Array(100_000);
  values[77_777] = 5;
  let reads = 0;
  const watched = new Proxy(values, {
    get(target, key) {
      if (typeof key === "string" && /^\d+$/.test(key)) reads++;
      const value = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const index = new WideEvents(watched as Float64Array);
  reads = 0;
  const hits: number[] = [];
  index.each(0, values.length, 1, (i) => hits.push(i));
  expect(hits).toEqual([77_777]);
  expect(reads).toBeLessThan(100);
});
