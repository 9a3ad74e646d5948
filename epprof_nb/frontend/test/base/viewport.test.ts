import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Viewport } from "../../src/base/viewport.ts";

let frames: (FrameRequestCallback | null)[];

beforeEach(() => {
  frames = [];
  vi.stubGlobal("requestAnimationFrame", (frame: FrameRequestCallback) => frames.push(frame));
  vi.stubGlobal("cancelAnimationFrame", (id: number) => {
    frames[id - 1] = null;
  });
  vi.stubGlobal("matchMedia", () => ({ matches: false }));
});
afterEach(() => vi.unstubAllGlobals());

/** The window after all frames, a second apart. */
function settled(move: (viewport: Viewport) => void) {
  const viewport = new Viewport({ start: 0, end: 1000 });
  viewport.width = 100;
  move(viewport);
  for (let i = 0; i < frames.length; i++) frames[i]?.(performance.now() + 1000 * (i + 1));
  viewport.destroy();
  return viewport.view;
}

test("an animation ends at its window", () => {
  expect(settled((viewport) => viewport.animateTo({ start: 0, end: 100 }))).toEqual({
    start: 0,
    end: 100,
  });
});

test("a nudge ends an animation", () => {
  const view = settled((viewport) => {
    viewport.animateTo({ start: 0, end: 100 });
    viewport.nudge(0, 0.5);
  });
  expect(view.end - view.start).toBeCloseTo(500);
});
