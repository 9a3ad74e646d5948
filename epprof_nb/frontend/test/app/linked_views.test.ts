import { beforeEach, expect, test, vi } from "vitest";
import { linkView } from "../../src/app/linked_views.ts";
import { Viewport } from "../../src/base/viewport.ts";

beforeEach(() => {
  vi.stubGlobal("cancelAnimationFrame", () => {});
  vi.stubGlobal("document", new EventTarget());
});

const view = (start: number, end: number): Viewport => {
  const viewport = new Viewport({ start, end });
  viewport.width = 1000;
  return viewport;
};

test("views of a group zoom and move together, about their origins", () => {
  const [before, after] = [view(0, 1000), view(-200, 800)];
  const other = view(0, 1000);
  const ends = [
    linkView({ group: "a", origin: 300, first: { start: -10, end: 90 } }, before),
    linkView({ group: "a", origin: 100, first: { start: -10, end: 90 } }, after),
    linkView({ group: "b", origin: 0, first: { start: 0, end: 0 } }, other),
  ];
  expect(before.view).toEqual({ start: 290, end: 390 });
  expect(after.view).toEqual({ start: 90, end: 190 });
  after.set({ start: 50, end: 350 });
  expect(before.view).toEqual({ start: 250, end: 550 });
  before.zoom(0.5, 0);
  expect(after.view).toEqual({ start: 50, end: 200 });
  expect(other.view).toEqual({ start: 0, end: 1000 });
  for (const end of ends) end();
  before.set({ start: 0, end: 10 });
  expect(after.view).toEqual({ start: 50, end: 200 });
  for (const each of [before, after, other]) each.destroy();
});

test("a view at its end does not hold the others back", () => {
  const [short, long] = [view(0, 100), view(0, 1000)];
  const ends = [short, long].map((v) =>
    linkView({ group: "c", origin: 0, first: { start: 0, end: 0 } }, v),
  );
  long.set({ start: 0, end: 600 });
  expect(long.view).toEqual({ start: 0, end: 600 });
  expect(short.view).toEqual({ start: 0, end: 100 });
  for (const end of ends) end();
  for (const each of [short, long]) each.destroy();
});
