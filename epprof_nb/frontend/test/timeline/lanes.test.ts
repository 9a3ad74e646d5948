import { describe, expect, test } from "vitest";
import type { Counter, Lane, ProfileHeader } from "../../src/data/wire_types.ts";
import { LaneState } from "../../src/timeline/lane_state.ts";
import { buildRows, placeRows, rowAt, slicesAt, totalHeight } from "../../src/timeline/lanes.ts";
import { RowLayout } from "../../src/timeline/row_layout.ts";
import { events } from "../helpers.ts";

const lane = (kind: Lane["kind"], label: string, device = -1, thread = -1): Lane => ({
  kind,
  label,
  device_label: kind === "stream" ? `GPU ${device}` : "",
  title: "",
  rows: 1,
  device,
  thread,
});
const counters = (device: number): Counter[] =>
  (["busy", "launches"] as const).map((what) => ({ what, device, name: `H100 ${device}` }));

const one = {
  lanes: [lane("ops", "main", -1, 1), lane("stream", "stream 7", 0)],
  counters: counters(0),
  devices: { 0: "GPU 0", 1: "GPU 1", 1000: "host device" },
  word: "GPU",
};
const two = {
  lanes: [
    lane("ops", "main", -1, 1),
    lane("api", "API calls", -1, 1),
    lane("api", "thread 2", -1, 2),
    lane("stream", "stream 7 (ctx 2)", 0),
    lane("stream", "stream 7", 1),
  ],
  counters: [...counters(0), ...counters(1)],
  devices: { 0: "GPU 0", 1: "GPU 1", 1000: "host device" },
  word: "GPU",
};
const all = events([[0, 100, -1]], [[10, 5]]);
const none = { folded: new Set<string>(), pinned: new Set<string>() };
const keys = (placed: { key: string }[]): string[] => placed.map(({ key }) => key);

test("the folds that hide a lane are those of all rows above it", () => {
  const threads = [1, 2, 3, 4, 5, 6];
  const lanes = threads.flatMap((n) => [lane("ops", "", -1, n), lane("api", "", -1, n)]);
  const headline = { device_word: "GPU" };
  const header = { lanes, counters: [], devices: {}, headline } as unknown as ProfileHeader;
  const state = new LaneState(lanes, () => {});
  const layout = new RowLayout(header, state, 100);
  const calls = lanes.length - 1;
  expect(layout.foldsOf(0)).toEqual([]);
  expect(layout.foldsOf(calls)).toEqual(["threads"]);
  state.toggleFold(`lane:${calls - 1}`);
  expect(layout.foldsOf(calls)).toEqual([`lane:${calls - 1}`, "threads"]);
});

test("lanes by process keep each thread beside the streams of its process", () => {
  const lanes = [1, 2, 3, 4, 5, 6].flatMap((n) => [
    lane("ops", `rank ${n}, main thread`, -1, n),
    lane("stream", "stream 7", n),
  ]);
  const source = {
    lanes,
    counters: [1, 2, 3, 4, 5, 6].flatMap(counters),
    devices: {},
    word: "GPU",
  };
  const rows = buildRows(source).filter(({ kind }) => kind === "ops" || kind === "device");
  expect(keys(rows)).toEqual(
    [1, 2, 3, 4, 5, 6].flatMap((n) => [`lane:${2 * n - 2}`, `device:${n}`]),
  );
});

describe("lanes", () => {
  test("are stacked, and find their events", () => {
    const { lanes } = placeRows(one, all, none);
    expect(lanes[1].y).toBeGreaterThan(lanes[0].y + lanes[0].height);
    expect(slicesAt(lanes, lanes[1].y + 3)[0].set.prefix).toBe("act");
    expect(slicesAt(lanes, lanes[0].y + lanes[0].height + 4)).toEqual([]);
    expect(rowAt(lanes, lanes[0].y + lanes[0].height + 4)?.key).toBe("lane:0");
    expect(rowAt(lanes, 1e6)).toBeNull();
  });
  test("take less room when folded", () => {
    const open = placeRows(one, all, none).lanes;
    const folded = placeRows(one, all, { ...none, folded: new Set(["lane:0"]) }).lanes;
    expect(totalHeight(folded)).toBeLessThan(totalHeight(open));
  });
  test("of one device lie below its counters, which stay in place", () => {
    const { sticky, lanes } = placeRows(one, all, none);
    expect(sticky.map(({ kind }) => kind)).toEqual(["busy", "launches"]);
    expect(keys(lanes)).toEqual(["lane:0", "lane:1"]);
    const folded = placeRows(one, all, { ...none, folded: new Set(["counter:0"]) });
    expect(folded.sticky.map(({ kind }) => kind)).toEqual(["busy"]);
  });
  test("of several devices have a row per device that folds them", () => {
    const { sticky, lanes } = placeRows(two, all, none);
    expect(sticky).toEqual([]);
    expect(keys(lanes)).toEqual([
      ...["lane:0", "lane:1", "lane:2", "device:0", "counter:1", "lane:3"],
      ...["device:1", "counter:3", "lane:4"],
    ]);
    expect(lanes[3].counter).toBe(0);
    expect(lanes[5].label).toBe("stream 7 (ctx 2)");
    const folded = placeRows(two, all, { ...none, folded: new Set(["device:0"]) }).lanes;
    expect(keys(folded)).not.toContain("lane:3");
    expect(keys(folded)).toContain("lane:4");
  });
  test("of memory are shown for a device without work, too", () => {
    const memory: Counter = { what: "memory", device: 1, name: "H100 1", parts: ["other"] };
    const rows = buildRows({ ...one, counters: [...one.counters, memory] });
    const at = rows.findIndex(({ key }) => key === "device:1");
    expect(rows[at].label).toBe("GPU 1");
    expect(rows[at + 1]).toMatchObject({ kind: "memory", counter: 2, parent: "device:1" });
  });
  test("of a folded thread fold its API calls, too", () => {
    const { lanes } = placeRows(two, all, { ...none, folded: new Set(["lane:0"]) });
    expect(keys(lanes).slice(0, 2)).toEqual(["lane:0", "lane:2"]);
  });
  test("that are pinned come first in the order of pinning, even if folded away", () => {
    const pinned = new Set(["lane:4", "lane:0"]);
    const { sticky, lanes } = placeRows(two, all, { folded: new Set(["device:1"]), pinned });
    expect(keys(sticky)).toEqual(["lane:4", "lane:0"]);
    expect(sticky[1].y).toBeGreaterThan(0);
    expect(keys(lanes)).not.toContain("lane:0");
  });
  test("of more than a few threads are grouped, with their API calls", () => {
    const threads = Array.from({ length: 10 }, (_, i) => [
      lane("ops", `loader · ${i}`, -1, i),
      lane("api", "API calls", -1, i),
    ]).flat();
    const given = { ...one, lanes: [...threads, lane("stream", "stream 7", 0)] };
    const { folded } = new LaneState(given.lanes, () => {});
    const first = given.lanes.slice(0, 8).map((_, i) => `lane:${i}`);
    const shown = placeRows(given, all, { ...none, folded }).lanes;
    expect(keys(shown)).toEqual([...first, "threads", "lane:20"]);
    expect(shown[8]).toMatchObject({ label: "6 more threads", folded: true });
    const unfolded = new Set([...folded].filter((key) => key !== "threads"));
    const open = placeRows(given, all, { ...none, folded: unfolded }).lanes;
    expect(open.length).toBe(22);
    expect(open[9]).toMatchObject({ key: "lane:8", label: "loader · 4", indent: 1 });
    // A pinned lane leaves the group; one lane alone is not grouped.
    const pinned = placeRows(given, all, { folded, pinned: new Set(["lane:18"]) });
    expect(keys(pinned.sticky)).toContain("lane:18");
    expect(keys(buildRows({ ...one, lanes: threads.slice(0, 10) }))).not.toContain("threads");
  });
  test("of many streams are grouped on a single device, too", () => {
    const streams = Array.from({ length: 20 }, (_, i) => lane("stream", `stream ${i}`, 0));
    const given = { lanes: streams, counters: counters(0), devices: {}, word: "GPU" };
    expect(keys(buildRows(given))[2]).toBe("device:0");
    const { lanes } = placeRows(given, events([], []), { ...none, folded: new Set(["device:0"]) });
    expect(lanes.length).toBe(1);
  });
});

test("folding all folds the open rows, or unfolds them if all are folded", () => {
  let changes = 0;
  const arrangement = new LaneState(two.lanes, () => changes++);
  expect([...arrangement.folded]).toEqual(["lane:1", "lane:2", "threads"]);
  arrangement.toggleAll(["lane:0", "lane:1"]);
  expect([...arrangement.folded].sort()).toEqual(["lane:0", "lane:1", "lane:2", "threads"]);
  arrangement.toggleAll(["lane:0", "lane:1"]);
  expect([...arrangement.folded]).toEqual(["lane:2", "threads"]);
  arrangement.togglePin("lane:0");
  arrangement.togglePin("lane:0");
  expect(arrangement.pinned.size).toBe(0);
  expect(changes).toBe(4);
});
