import { expect, test } from "vitest";
import type { Row } from "../src/render/backend.ts";
import type { Frame } from "../src/render/renderer.ts";
import { palette } from "../src/render/theme.ts";
import { WebglBars } from "../src/webgl.ts";
import type { Device } from "../src/webgl_device.ts";
import { events } from "./helpers.ts";

/** A device that counts what it is asked for. */
function device() {
  const calls = new Map<string, number>();
  const gl = new Proxy(
    {},
    {
      get: (_, name) => {
        if (String(name).toUpperCase() === name) return 1;
        return () => {
          calls.set(String(name), (calls.get(String(name)) ?? 0) + 1);
          return name === "isContextLost" ? false : {};
        };
      },
    },
  );
  const fake = {
    gl,
    canvas: { height: 400 },
    uniforms: {},
    usable: true,
    users: 0,
    grow: () => true,
    join: () => fake.users++,
    leave: () => fake.users--,
  };
  return { fake, device: fake as unknown as Device, count: (name: string) => calls.get(name) ?? 0 };
}

const context = new Proxy({}, { get: () => () => undefined }) as CanvasRenderingContext2D;

function frame(start: number, end: number): Frame {
  return {
    view: { start, end },
    width: 1000,
    height: 400,
    palette: palette("light", false),
    lit: null,
  };
}

function rows(): Row[] {
  const many = Array.from({ length: 500 }, (_, i): [number, number] => [i * 100, 40]);
  const { act, op } = events([[0, 50_000, -1]], many);
  return [op, act].map((set, i) => ({
    slice: set.slices[0],
    band: { y: 40 * i, height: 18, look: "activity" },
  }));
}

test("columns go to the GPU once, however many frames are drawn", () => {
  const { device: one, count } = device();
  const bars = new WebglBars(one, () => undefined);
  const drawn = rows();
  for (let i = 0; i < 50; i++) bars.draw(context, frame(i * 10, 1000 + i * 10), 1, drawn);
  expect(count("texSubImage2D")).toBe(2);
  expect(count("drawArraysInstanced")).toBe(2 * 2 * 50);
});

test("what is no longer drawn, and all at the end, is taken off the GPU", () => {
  const { fake, device: one, count } = device();
  const bars = new WebglBars(one, () => undefined);
  const [op, act] = rows();
  bars.draw(context, frame(0, 1000), 1, [op, act]);
  for (let i = 0; i < 300; i++) bars.draw(context, frame(0, 1000), 1, [act]);
  expect(count("deleteTexture")).toBe(1);
  expect(fake.users).toBe(1);
  bars.destroy();
  expect(count("deleteTexture")).toBe(count("createTexture"));
  expect(fake.users).toBe(0);
});

test("many selections one after the other do not pile up", () => {
  const { device: one, count } = device();
  const bars = new WebglBars(one, () => undefined);
  const drawn = rows();
  for (let i = 0; i < 1000; i++) {
    const act = new Uint8Array(500).fill(1, i % 500);
    const lit = { op: Uint8Array.of(1), api: new Uint8Array(0), act, chosen: null };
    bars.draw(context, { ...frame(0, 1000), lit }, 1, drawn);
  }
  expect(count("createTexture") - count("deleteTexture")).toBeLessThan(450);
});

test("nothing is drawn with a context that is lost", () => {
  const { fake, device: one, count } = device();
  const bars = new WebglBars(one, () => undefined);
  fake.usable = false;
  expect(bars.draw(context, frame(0, 1000), 1, rows())).toBe(false);
  expect(count("drawArraysInstanced")).toBe(0);
});
