import { describe, expect, test } from "vitest";
import { Pinch } from "../../../src/timeline/input/pinch.ts";

describe("two fingers", () => {
  test("that move apart zoom in about their middle", () => {
    const pinch = new Pinch();
    pinch.down(1, 100);
    expect(pinch.move(1, 110)).toBeNull();
    pinch.down(2, 210);
    expect(pinch.active).toBe(true);
    expect(pinch.move(2, 310)).toEqual({ factor: 0.5, x: 210, moved: 50 });
    pinch.up(1);
    expect(pinch.move(2, 400)).toBeNull();
  });
  test("that move together pan", () => {
    const pinch = new Pinch();
    pinch.down(1, 0);
    pinch.down(2, 100);
    const first = pinch.move(1, 20);
    const second = pinch.move(2, 120);
    expect((first?.moved ?? 0) + (second?.moved ?? 0)).toBe(20);
    expect((first?.factor ?? 0) * (second?.factor ?? 0)).toBeCloseTo(1);
  });
});
