import { describe, expect, test } from "vitest";
import { hit } from "../../src/timeline/hit.ts";
import { events } from "../helpers.ts";

/** The op under a pixel; one pixel is 1 ns. */
function under(ops: [number, number][], x: number): number | undefined {
  const { op } = events(
    ops.map(([start, length]) => [start, length, -1]),
    [],
  );
  return hit(op.slices, { start: 0, end: 1000 }, 1000, x)?.event;
}

test("the shortest event under the pointer is hit", () => {
  expect(
    under(
      [
        [0, 900],
        [100, 100],
        [120, 500],
      ],
      150,
    ),
  ).toBe(1);
  expect(
    under(
      [
        [0, 900],
        [100, 500],
        [120, 100],
      ],
      150,
    ),
  ).toBe(2);
});

test("an event under the pointer comes before a nearer and shorter one beside it", () => {
  expect(
    under(
      [
        [0, 500],
        [502, 1],
      ],
      499,
    ),
  ).toBe(0);
});

test("the nearest event within some pixels is hit", () => {
  expect(
    under(
      [
        [100, 1],
        [105, 1],
      ],
      102,
    ),
  ).toBe(0);
  expect(
    under(
      [
        [100, 1],
        [105, 1],
      ],
      104,
    ),
  ).toBe(1);
  expect(under([[100, 1]], 110)).toBeUndefined();
});

describe("the event under the pointer", () => {
  const view = { start: 0, end: 1000 };
  test("is the shortest one there", () => {
    const { slices } = events(
      [
        [0, 1000, -1],
        [400, 200, 0],
      ],
      [],
    ).op;
    expect(hit(slices, view, 100, 50)?.event).toBe(1);
    expect(hit(slices, view, 100, 10)?.event).toBe(0);
  });
  test("may be a few pixels beside a thin event", () => {
    const { slices } = events([], [[500, 1]]).act;
    expect(hit(slices, view, 100, 52)?.event).toBe(0);
    expect(hit(slices, view, 100, 54)).toBeNull();
  });
});
