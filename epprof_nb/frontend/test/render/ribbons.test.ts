import { expect, test } from "vitest";
import { sampleEvenly } from "../../src/base/evenly_spread.ts";
import { bundle, type Line } from "../../src/render/ribbons.ts";

const line = (x0: number, x1: number, y1 = 100): Line => ({ x0, y0: 10, x1, y1 });

test("lines side by side are one ribbon", () => {
  const many = Array.from({ length: 30 }, (_, i) => line(5 * i, 200 + 8 * i));
  expect(bundle(many)).toEqual({
    lines: [],
    ribbons: [{ left0: 0, right0: 145, y0: 10, left1: 200, right1: 432, y1: 100 }],
  });
});

test("whatever their order", () => {
  const many = [3, 1, 2, 0].map((i) => line(10 * i, 200 + 10 * i));
  expect(bundle(many).ribbons).toEqual([
    { left0: 0, right0: 30, y0: 10, left1: 200, right1: 230, y1: 100 },
  ]);
});

test("lines apart at one end, or to another row, stay apart", () => {
  const apart = [line(0, 200), line(5, 300), line(8, 305, 150), line(50, 310)];
  expect(bundle(apart)).toEqual({ lines: [apart[0], apart[1], apart[3], apart[2]], ribbons: [] });
});

test("a ribbon hardly wider than a line is a line", () => {
  expect(bundle([line(0, 200), line(1, 201), line(2, 202)])).toEqual({
    lines: [line(0, 200)],
    ribbons: [],
  });
});

test("a ribbon is as wide as its lines, though they cross", () => {
  const [ribbon] = bundle([line(0, 210), line(6, 204), line(12, 198)]).ribbons;
  expect(ribbon).toEqual({ left0: 0, right0: 12, y0: 10, left1: 198, right1: 210, y1: 100 });
});

test("a sample is even and has the first and the last item", () => {
  const all = Array.from({ length: 1001 }, (_, i) => i);
  expect(sampleEvenly(all, 5)).toEqual([0, 250, 500, 750, 1000]);
  expect(sampleEvenly(all, 2000)).toEqual(all);
});
