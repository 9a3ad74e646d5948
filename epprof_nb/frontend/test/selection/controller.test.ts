// Answers that arrive after the selection has changed.

import { beforeEach, expect, test, vi } from "vitest";
import type { DataSource } from "../../src/data/data_source.ts";
import type { Fields } from "../../src/data/events.ts";
import type { Related } from "../../src/data/selection_queries.ts";
import type { EventRef, SeekResult } from "../../src/data/wire_types.ts";
import { SelectionController } from "../../src/selection/controller.ts";
import { events } from "../helpers.ts";

/** The part of an element that the panel uses. */
class StubElement {
  parentElement: StubElement | null = null;
  #children: (StubElement | string)[] = [];
  setAttribute(): void {}
  addEventListener(): void {}
  append(...children: (StubElement | string)[]): void {
    this.#children.push(...children);
    for (const child of children) if (typeof child !== "string") child.parentElement = this;
  }
  replaceChildren(...children: (StubElement | string)[]): void {
    this.#children = [];
    this.append(...children);
  }
  get textContent(): string {
    return this.#children.map((c) => (typeof c === "string" ? c : c.textContent)).join("");
  }
  set textContent(text: string) {
    this.#children = [text];
  }
}

beforeEach(() => {
  vi.stubGlobal("document", { createElement: () => new StubElement() });
});

const event = (row: number): EventRef => ({
  prefix: "act",
  row,
  name: `kernel ${row}`,
  start: 10 * row,
  dur: 5,
  lane: 1,
  level: 0,
});
const answer = (start: number, number: number | null = null): SeekResult => ({
  count: 7,
  start,
  end: start + 1,
  number,
  event: number === null ? null : event(number),
});
const relations = (row: number): Related => ({
  chain: [],
  line: null,
  call: null,
  delay: null,
  flows: [[event(row), event(row)]],
  launched: 1,
  before: null,
  after: null,
  same: { before: null, after: null, number: null, count: 1 },
});
const search = (pattern: string) => ({ what: "search", pattern }) as const;

interface Request<T> {
  resolve(answer: T): void;
  reject(error: Error): void;
}

/** A controller whose source answers when the test says so, the first request first. */
function rig() {
  const seeks: Request<SeekResult>[] = [];
  const fields: Request<Fields>[] = [];
  const related: Request<Related>[] = [];
  const asked = <T>(requests: Request<T>[]): Promise<T> =>
    new Promise((resolve, reject) => requests.push({ resolve, reject }));
  const source = {
    live: true,
    zooms: true,
    seek: () => asked(seeks),
    describe: () => asked(fields),
    related: () => asked(related),
    setSelection: () => {},
  } as unknown as DataSource;
  const timeline = {
    draw: vi.fn(),
    show: vi.fn(),
    reveal: vi.fn(),
    highlightChanged: vi.fn(),
    setFlows: vi.fn(),
    view: () => ({ start: 0, end: 100 }),
    devices: {},
    wheelHint: "",
  };
  const drawn = events(
    [[0, 100, 0]],
    [
      [0, 5],
      [10, 5],
      [20, 5],
      [30, 5],
    ],
  );
  const controller = new SelectionController(drawn, source, timeline);
  return { controller, timeline, seeks, fields, related };
}

/** Let the controller take all answers that have arrived. */
const answered = () => new Promise((resolve) => setTimeout(resolve));

test("the answer to an earlier query changes nothing", async () => {
  const { controller, timeline, seeks } = rig();
  const [first, second] = [search("a"), search("b")].map((query) =>
    controller.select(query, query.pattern),
  );
  seeks[1].resolve(answer(40));
  await second;
  seeks[0].resolve(answer(20));
  expect(await first).toBeNull();
  expect(controller.extent).toEqual({ start: 40, end: 41 });
  expect(timeline.show.mock.calls).toEqual([[{ start: 40, end: 41 }]]);
  expect(controller.panel.textContent).toContain(" b");
});

test("an error of an earlier query changes nothing", async () => {
  const { controller, seeks } = rig();
  const first = controller.select(search("a"), "a");
  const second = controller.select(search("b"), "b");
  seeks[1].resolve(answer(40));
  await second;
  seeks[0].reject(new Error("the kernel has died"));
  expect(await first).toBeNull();
  expect(controller.panel.textContent).not.toContain("has died");
});

test("the next event of a cleared query is not selected", async () => {
  const { controller, timeline, seeks } = rig();
  const all = controller.select(search("a"), "a");
  seeks[0].resolve(answer(40));
  await all;
  const next = controller.seekBy(1);
  controller.clear();
  seeks[1].resolve(answer(40, 2));
  expect(await next).toBeNull();
  expect(controller.current).toBeNull();
  expect(timeline.reveal).not.toHaveBeenCalled();
});

test("the details of an event that is no longer selected are not shown", async () => {
  const { controller, timeline, fields, related } = rig();
  controller.selectEvent(event(1));
  controller.selectEvent(event(2));
  fields[1].resolve({ start_ns: 20, end_ns: 25 });
  related[1].resolve(relations(2));
  await answered();
  fields[0].resolve({ start_ns: 10, end_ns: 99 });
  related[0].resolve(relations(1));
  await answered();
  expect(controller.current).toEqual(event(2));
  expect(controller.panel.textContent).toContain("kernel 2");
  expect(timeline.setFlows.mock.calls).toEqual([[relations(2).flows]]);
});

test("an error about an event that is no longer selected is not shown", async () => {
  const { controller, fields, related } = rig();
  controller.selectEvent(event(1));
  controller.selectEvent(event(2));
  fields[1].resolve({});
  related[1].resolve(relations(2));
  await answered();
  fields[0].reject(new Error("the kernel has died"));
  await answered();
  expect(controller.panel.textContent).not.toContain("has died");
});

test("flows are neither requested nor drawn for an event that is no longer selected", async () => {
  vi.useFakeTimers();
  const { controller, timeline, fields, related } = rig();
  controller.selectEvent(event(1));
  fields[0].resolve({});
  related[0].resolve({ ...relations(1), launched: 9 });
  await vi.runAllTimersAsync();
  controller.setEvents(events([[0, 100, 0]], [[0, 5]]));
  await vi.runAllTimersAsync();
  controller.setEvents(events([[0, 100, 0]], []));
  controller.clear();
  related[1].resolve(relations(1));
  await vi.runAllTimersAsync();
  vi.useRealTimers();
  expect(timeline.setFlows.mock.lastCall).toEqual([[]]);
  expect(related).toHaveLength(2);
});
