import { describe, expect, test } from "vitest";
import { Contexts, type Holder } from "../src/webgl_contexts.ts";
import { FLOATS, pack, split } from "../src/webgl_pack.ts";
import { columns, events } from "./helpers.ts";

/** Where the vertex shader sees a time: in float32 all along. */
function seen([hi, lo]: [number, number], [originHi, originLo]: [number, number], scale: number) {
  const f = Math.fround;
  return f(f(f(hi - originHi) + f(lo - originLo)) * f(scale));
}

describe("double-single times", () => {
  test("tell 20 ns apart anywhere in ten seconds", () => {
    const width = 1200;
    for (const start of [0, 1, 123_456_789, 4_999_999_990, 9_999_999_979]) {
      const view = split(start);
      for (const ns of [0, 1, 7, 13, 20]) {
        const x = seen(split(start + ns), view, width / 20);
        expect(Math.abs(x - (ns * width) / 20)).toBeLessThan(0.01);
      }
    }
  });
  test("hold far ends in place: an event of the whole profile ends where it should", () => {
    const x = seen(split(10_000_000_000), split(9_999_999_990), 60);
    expect(x).toBeCloseTo(600, 2);
  });
  test("are exact", () => {
    for (const value of [0, -17, 2 ** 40 + 12345, 86_400e9 + 1]) {
      const [hi, lo] = split(value);
      expect(hi + lo).toBe(value);
    }
  });
});

describe("packing", () => {
  const slice = events(
    [],
    [
      [1_000, 5],
      [1_010, 0],
      [1_050, -3],
    ],
  ).act.slices[0];
  test("counts times from the first event and tells the gaps", () => {
    const { data, base } = pack(slice);
    expect(base).toBe(1_000);
    expect([...data.subarray(FLOATS, 2 * FLOATS)]).toEqual([10, 0, 10, 0, 5, 40, 1, 1]);
  });
  test("makes an instant of what ends before it starts", () => {
    const { data } = pack(slice);
    expect([data[2 * FLOATS], data[2 * FLOATS + 2]]).toEqual([50, 50]);
  });
  test("takes the share that events cover", () => {
    const cover = Float64Array.of(2, 0, 0);
    expect(pack({ ...slice, set: columns(slice.set, { cover }) }).data[6]).toBeCloseTo(0.4);
  });
});

describe("the page's contexts", () => {
  class Timeline implements Holder {
    released = 0;
    constructor(public visible = true) {}
    seen(): boolean {
      return this.visible;
    }
    release(): void {
      this.released++;
    }
  }
  test("are limited while all are seen", () => {
    const contexts = new Contexts(2);
    expect([1, 2, 3].map(() => contexts.take(new Timeline()))).toEqual([true, true, false]);
  });
  test("are taken from the one unseen longest", () => {
    const contexts = new Contexts(2);
    const [first, second, third] = [new Timeline(), new Timeline(false), new Timeline()];
    contexts.take(first);
    contexts.take(second);
    expect(contexts.take(third)).toBe(true);
    expect([first.released, second.released]).toEqual([0, 1]);
    expect(contexts.take(second)).toBe(false);
  });
  test("given back are free again, and asking twice costs one", () => {
    const contexts = new Contexts(1);
    const one = new Timeline();
    expect([contexts.take(one), contexts.take(one)]).toEqual([true, true]);
    contexts.give(one);
    expect(contexts.take(new Timeline())).toBe(true);
  });
});
