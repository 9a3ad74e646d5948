import { describe, expect, test } from "vitest";
import { nextGap } from "../../../src/app/headline_links.ts";
import { position } from "../../../src/base/format.ts";
import { bringIntoView } from "../../../src/base/time_scale.ts";
import { queryForRow } from "../../../src/breakdown/row_selection.ts";
import { byRange } from "../../../src/data/embedded/by_range.ts";
import { EventOrder } from "../../../src/data/embedded/event_order.ts";
import { related } from "../../../src/data/embedded/related.ts";
import { compile, matches } from "../../../src/data/embedded/search_pattern.ts";
import { highlightFor, matchingEvents } from "../../../src/data/embedded/selected_events.ts";
import { Events } from "../../../src/data/events.ts";
import { KINDS } from "../../../src/data/kinds.ts";
import { hitOf, refOf } from "../../../src/data/selection_queries.ts";
import { Bundle } from "../../../src/data/wire_format.ts";
import type { EventsHeader, ProfileHeader } from "../../../src/data/wire_types.ts";
import { groups } from "../../../src/selection/event_fields.ts";
import { encode, events, type Given } from "../../helpers.ts";

const NAMES = ["cell", "step", "cuLaunchKernel", "gemm", "HtoD", "In[1]"];

/** A cell with a line, two calls of it, and what they launched on two streams. */
function profile(more: Record<string, Given> = {}): Events {
  const f64 = (values: number[]): Given => ({ tag: "f64", values });
  const i32 = (values: number[]): Given => ({ tag: "i32", values });
  const bytes = encode(
    {
      kinds: [...KINDS],
      names: NAMES,
      texts: ["op.name", "op.cell", "api.name", "act.name"],
      slices: {
        op: [
          [0, 0, 0, 1],
          [0, 1, 1, 2],
        ],
        api: [[1, 0, 0, 2]],
        act: [
          [2, 0, 0, 2],
          [3, 0, 2, 3],
        ],
      },
      shown: { activities: [3, 3] },
    },
    {
      "op.start": f64([0, 10]),
      "op.dur": f64([100, 50]),
      "op.op": i32([-1, 0]),
      "op.name": i32([0, 1]),
      "op.cell": i32([-1, 5]),
      "op.line": i32([-1, 2]),
      "api.start": f64([11, 20]),
      "api.dur": f64([2, 2]),
      "api.op": i32([1, 1]),
      "api.name": i32([2, 2]),
      "api.correlation_id": i32([7, 8]),
      "act.start": f64([30, 60, 70]),
      "act.dur": f64([10, 20, 10]),
      "act.op": i32([1, 1, -1]),
      "act.kind": i32([1, 1, 2]),
      "act.device_id": i32([0, 0, 0]),
      "act.name": i32([3, 3, 4]),
      "act.correlation_id": i32([7, 8, -1]),
      "act.bytes": i32([-1, -1, 1000]),
      ...more,
    },
  );
  return new Events(new Bundle<EventsHeader>(bytes));
}

const header = {
  source: [{ cell: "In[1]", lines: ["a = 1", "  b = step(a)"], left_out: 0, totals: [] }],
} as unknown as ProfileHeader;
const counted = new Bundle<ProfileHeader>(
  encode(
    { counters: [{ what: "busy", device: 0, name: "GPU" }] },
    {
      "counter.0.t": { tag: "f64", values: [30, 40, 60, 80] },
      "counter.0.value": { tag: "f64", values: [0, 10, 10, 30] },
    },
  ),
);

const all = profile();

describe("a selection", () => {
  test("by columns matches the values, or one of them", () => {
    const where = (equals: Record<string, string | number | null | string[]>) =>
      matchingEvents(all, { what: "where", prefix: "act", equals });
    expect(where({ name: "gemm" })).toEqual({ act: [0, 1] });
    expect(where({ kind: ["memcpy", "memset"] })).toEqual({ act: [2] });
    expect(where({ op_id: null })).toEqual({ act: [2] });
    expect(where({ name: "gemm", correlation_id: 8 })).toEqual({ act: [1] });
  });
  test("by pattern matches names in every table, and highlights nothing else", () => {
    const wanted = { what: "search", pattern: "gemm|step" } as const;
    expect(matchingEvents(all, wanted)).toEqual({ op: [1], api: [], act: [0, 1] });
    const masks = highlightFor(all, wanted);
    expect([...masks.api]).toEqual([0, 0]);
    expect([...masks.op]).toEqual([0, 1]);
  });
  test("of a launch highlights what it launched", () => {
    const masks = highlightFor(all, { what: "event", prefix: "api", row: 1 });
    expect([...masks.act]).toEqual([0, 1, 0]);
    expect([...masks.api]).toEqual([0, 1]);
  });
  test("is highlighted by Python only if Python was asked for it", () => {
    const window = profile({
      "op.highlighted": { tag: "u8", values: [0, 0] },
      "api.highlighted": { tag: "u8", values: [0, 0] },
      "act.highlighted": { tag: "u8", values: [0, 0, 1] },
    });
    const wanted = { what: "where", prefix: "act", equals: { name: "gemm" } } as const;
    expect([...highlightFor(window, wanted).act]).toEqual([1, 1, 0]);
    window.highlightKey = JSON.stringify(wanted);
    expect([...highlightFor(window, wanted).act]).toEqual([0, 0, 1]);
  });
  test("stays with its row when other events are drawn", () => {
    const window = profile({
      "op.row": { tag: "i32", values: [4, 5] },
      "api.row": { tag: "i32", values: [0, 1] },
      "act.row": { tag: "i32", values: [90, 91, 92] },
    });
    expect(hitOf(window, { prefix: "act", row: 91 })?.event).toBe(1);
    expect(hitOf(window, { prefix: "act", row: 1 })).toBeNull();
    expect(refOf({ set: window.act, event: 2 })).toMatchObject({ row: 92, lane: 3, level: 0 });
  });
});

describe("the event order", () => {
  const walk = new EventOrder(all, { what: "search", pattern: "gemm|step|cu" }, null);
  test("goes through the tables by time, and wraps around", () => {
    const starts = [0, 1, 2, 3, 4, 5, -1].map((number) => walk.seek({ number }).event?.start);
    expect(starts).toEqual([10, 11, 20, 30, 60, 10, 60]);
    expect(walk.seek({})).toMatchObject({ count: 5, start: 10, end: 80, event: null });
  });
  test("starts at a time", () => {
    expect(walk.seek({ at: 15 }).number).toBe(2);
    expect(walk.seek({ at: 999 }).number).toBe(0);
  });
  test("is estimated if a rectangle stands for several events, and says so", async () => {
    const merged = profile({ "act.members": { tag: "i32", values: [1, 1234, 1] } });
    const found = new EventOrder(merged, { what: "search", pattern: "gemm" }, null).seek({});
    expect(found).toMatchObject({ count: 1235, about: true });
    expect(position(null, found.count, found.about)).toBe("about 1,200");
    expect(position(1, 5)).toBe("2 of 5");
  });
  test("of nothing is empty", () => {
    const none = new EventOrder(all, { what: "search", pattern: "absent" }, null);
    expect(none.seek({ number: 0 })).toMatchObject({ count: 0, event: null });
  });
});

describe("the relations of an event", () => {
  test("of a kernel: its call, ops, line, and the one before", () => {
    const told = related(all, header, { set: all.act, event: 1 }, null);
    expect(told.chain.map((op) => op.name)).toEqual(["cell", "step"]);
    expect(told.line).toEqual({ cell: "In[1]", line: 2, text: "b = step(a)" });
    expect(told.call?.start).toBe(20);
    expect(told.delay).toBe(40);
    expect(told.before?.start).toBe(30);
    expect(told.after).toBeNull();
    expect(told.same).toMatchObject({ number: 2, count: 2, after: null });
  });
  test("of events that start together: the order of the table", () => {
    const together = profile({ "act.start": { tag: "f64", values: [30, 30, 70] } });
    const told = related(together, header, { set: together.act, event: 0 }, null);
    expect(told.same).toMatchObject({ number: 1, before: null, after: { row: 1 } });
  });
  test("of an op: what it launched, the longest first, from the calls", () => {
    const told = related(all, header, { set: all.op, event: 0 }, null);
    expect(told.flows.map(([from, to]) => [from.start, to.start])).toEqual([
      [20, 60],
      [11, 30],
    ]);
    expect(told.launched).toBe(2);
    expect(told.call).toBeNull();
  });
  test("of a copy of no op: nothing", () => {
    const told = related(all, header, { set: all.act, event: 2 }, null);
    expect([told.chain, told.line, told.call, told.delay, told.flows]).toEqual([
      [],
      null,
      null,
      null,
      [],
    ]);
  });
});

describe("the breakdown of a range", () => {
  test("clips times, and counts every event that overlaps it", async () => {
    const told = await byRange(all, counted, { start: 35, end: 75 });
    expect(told.device_ns).toBe(5 + 15 + 5);
    expect([told.kernels, told.copies, told.bytes]).toEqual([2, 1, 1000]);
    expect(told.devices[0].busy).toBe(20);
    expect(told.names.rows).toEqual([
      ["gemm", 2, 20],
      ["HtoD", 1, 5],
    ]);
    expect(told.ops.rows).toEqual([
      ["step", 2, 20],
      ["(no op)", 1, 5],
    ]);
    expect(told.estimated).toBeUndefined();
  });
  test("without events is empty", async () => {
    expect((await byRange(all, counted, { start: 40, end: 60 })).device_ns).toBe(0);
    expect((await byRange(all, counted, { start: 40, end: 60 })).kernels).toBe(0);
  });
  test("is estimated if a rectangle stands for several events, and says so", async () => {
    const merged = profile({
      "act.members": { tag: "i32", values: [1, 10, 1] },
      "act.cover": { tag: "i32", values: [10, 8, 10] },
    });
    const told = await byRange(merged, counted, { start: 60, end: 70 });
    expect(told.kernels).toBe(5);
    expect(told.names.rows[0]).toEqual(["gemm", 5, 4]);
    expect(told.estimated).toEqual({ exact: null, bin: null });
  });
});

describe("a pattern", () => {
  test.each([
    ["gemm", "my_GEMM_kernel", true],
    ["GEMM", "my_gemm_kernel", false],
    ["^a\\S+z$", "ABZ", true],
    ["\\D", "1a", true],
    ["(foo|bar)", "bar", true],
    ["(?:ab)+c", "ababc", true],
    ["x{2,3}", "axxb", true],
    ["[(*+]+", "a(", true],
  ])("%s against %s is %s", (pattern, name, expected) => {
    expect(compile(pattern)(name)).toBe(expected);
  });
  test.each([
    "(",
    "a**",
    "(a+)+$",
    "(a|a)*",
    "((a+)b)*",
    "([a-z]+)*",
    "x".repeat(401),
    "a*b*c*d*e*",
  ])("%s is refused", (pattern) => {
    expect(() => compile(pattern)).toThrow(/\w/);
  });
  test("of no names matches nothing", () => {
    expect([...matches(["a", ""], "")]).toEqual([0, 0]);
  });
});

describe("bringing an event into view", () => {
  const view = { start: 0, end: 1000 };
  test("moves nothing if the event is visible", () => {
    expect(bringIntoView(view, 1000, { start: 500, end: 520 })).toBe(view);
  });
  test("keeps the zoom if only the position is wrong", () => {
    expect(bringIntoView(view, 1000, { start: 5000, end: 5020 })).toEqual({
      start: 4510,
      end: 5510,
    });
  });
  test("zooms to events that are too small or too large", () => {
    const small = bringIntoView({ start: 0, end: 1e6 }, 1000, { start: 500, end: 510 });
    expect(small.end - small.start).toBeLessThan(200);
    expect((small.start + small.end) / 2).toBe(505);
    const large = bringIntoView(view, 1000, { start: -5000, end: 5000 });
    expect(large.end - large.start).toBeGreaterThan(10_000);
  });
});

describe("fields", () => {
  test("come in groups with units; empty ones are omitted", () => {
    const told = groups(
      "act",
      {
        start_ns: 1_234_567,
        end_ns: 3_234_567,
        kind: "memcpy",
        bytes: 4_000_000,
        stream_id: 7,
        grid_x: 2,
        grid_y: 1,
        grid_z: 1,
        run_id: -1,
      },
      12_000,
    );
    const flat = Object.fromEntries(
      told.flatMap((g) => g.fields.map((f) => [`${g.title}: ${f.label}`, f.value])),
    );
    expect(flat).toEqual({
      "what: kind": "memcpy",
      "when: duration": "2.00 ms",
      "when: start": "1.235 ms",
      "when: end": "3.235 ms",
      "when: queued": "12.0 µs",
      "where: stream": "7",
      "launch: grid": "2 × 1 × 1",
      "memory: size": "4.00 MB",
      "memory: bandwidth": "2.00 GB/s",
    });
  });
  test("without a time of its own have no duration", () => {
    const when = groups("act", { stream_id: 7 }, 12_000).flatMap((g) => g.fields);
    expect(when.map((f) => f.label)).toEqual(["stream"]);
  });
  test("of memory are sizes; a change may be -1 byte", () => {
    const memory = (given: Record<string, number>) =>
      groups("act", given, null)
        .filter((g) => g.title === "memory")
        .flatMap((g) => g.fields.map((f) => `${f.label} ${f.value}`));
    expect(memory({ in_use_bytes: 3_000_000, in_use_delta_bytes: -1 })).toEqual([
      "in use 3.00 MB",
      "in use delta -1 B",
    ]);
    expect(memory({ in_use_bytes: -1, in_use_delta_bytes: -(2 ** 53) })).toEqual([]);
  });
  test("of no group come last; copied values keep every digit", () => {
    const told = groups("act", { new_column: 12345678901234567n }, null);
    expect(told.at(-1)).toMatchObject({
      title: "more",
      fields: [{ label: "new column", raw: "12345678901234567" }],
    });
  });
});

describe("a row of a breakdown", () => {
  test("is queried by its identifying columns", () => {
    expect(queryForRow("kernel", { name: "gemm", count: 3 })).toEqual({
      what: "where",
      prefix: "act",
      equals: { name: "gemm", kind: "kernel" },
    });
    expect(queryForRow("line", { cell: "In[1]", line: 2 })).toMatchObject({
      prefix: "op",
      equals: { cell: "In[1]", line: 2 },
    });
    expect(queryForRow("op", { name: "(no op)", count: 0 })).toMatchObject({
      prefix: "act",
      equals: { op_id: null },
    });
    expect(queryForRow("op", { name: "(no op)", count: 2 })).toMatchObject({ prefix: "op" });
  });
});

test("gaps come one after another, and wrap around", () => {
  const gaps: [number, number][] = [
    [10, 20],
    [40, 50],
  ];
  expect(nextGap(gaps, null)).toEqual([10, 20]);
  expect(nextGap(gaps, 10)).toEqual([40, 50]);
  expect(nextGap(gaps, 40)).toEqual([10, 20]);
  expect(nextGap([], 40)).toBeUndefined();
});

describe("selection", () => {
  // cell > line > range, and another line
  const all = events(
    [
      [0, 100, -1],
      [0, 50, 0],
      [0, 40, 1],
      [50, 50, 0],
    ],
    [
      [10, 5],
      [20, 5],
      [60, 5],
    ],
    [2, 1, 3],
  );
  test("of an op highlights its subtree and what it launched", () => {
    const masks = highlightFor(all, { what: "event", prefix: "op", row: 1 });
    expect([...masks.op]).toEqual([0, 1, 1, 0]);
    expect([...masks.act]).toEqual([1, 1, 0]);
  });
  test("of an activity highlights its chain", () => {
    const masks = highlightFor(all, { what: "event", prefix: "act", row: 0 });
    expect([...masks.op]).toEqual([1, 1, 1, 0]);
    expect([...masks.act]).toEqual([1, 0, 0]);
    expect(all.chain(2)).toEqual([0, 1, 2]);
  });
  test("by name highlights every such activity and the ops above", () => {
    const masks = highlightFor(all, { what: "where", prefix: "act", equals: { name: "a" } });
    expect([...masks.act]).toEqual([0, 1, 0]);
    expect([...masks.op]).toEqual([1, 1, 0, 0]);
  });
  test("ends where a parent is its own child", () => {
    const loop = events(
      [
        [0, 1, 1],
        [0, 1, 0],
      ],
      [],
    );
    expect(loop.chain(0).length).toBeLessThanOrEqual(1000);
    expect(loop.subtree([0])).toEqual(new Set([0, 1]));
  });
});
