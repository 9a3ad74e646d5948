import { describe, expect, test } from "vitest";
import { highlightFor } from "../../src/data/embedded/selected_events.ts";
import { EventSet } from "../../src/data/events.ts";
import { KINDS } from "../../src/data/kinds.ts";
import type { EventsHeader } from "../../src/data/model.ts";
import { Bundle, fromBase64, inflate } from "../../src/data/wire_format.ts";
import { hit } from "../../src/timeline/hit.ts";
import { encode, events } from "../helpers.ts";

describe("decoding", () => {
  test("reverses byte planes and differences", () => {
    const bundle = new Bundle(
      encode(
        {},
        {
          small: { tag: "u8", values: [1, 2, 255] },
          wide: { tag: "f64", values: [0.5, 2 ** 53, -1] },
          steps: { tag: "i32", values: [0, 5, -7], from: 1_000_000 },
          huge: { tag: "i64", values: [2n ** 62n, -1n] },
        },
      ),
    );
    expect([...(bundle.column("small") ?? [])]).toEqual([1, 2, 255]);
    expect([...(bundle.column("wide") ?? [])]).toEqual([0.5, 2 ** 53, -1]);
    expect([...(bundle.column("steps") ?? [])]).toEqual([1_000_000, 1_000_005, 999_998]);
    expect([...(bundle.column("huge") ?? [])]).toEqual([2n ** 62n, -1n]);
    expect(bundle.column("none")).toBeUndefined();
  });
  test("reads plain columns relative to their minimum", () => {
    const columns = {
      times: ["u16", 0, 2, 1e12],
      codes: ["i8", 4, 3, null],
      wide: ["f64", 7, 1, null],
      huge: ["i64", 15, 1, null],
    };
    const text = new TextEncoder().encode(JSON.stringify({ plain: true, columns }));
    const bytes = new Uint8Array(4 + text.length + 23);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, text.length, true);
    bytes.set(text, 4);
    const at = 4 + text.length;
    view.setUint16(at + 2, 40_000, true);
    view.setInt8(at + 5, -1);
    view.setFloat64(at + 7, 2 ** 53, true);
    view.setBigInt64(at + 15, 2n ** 62n, true);
    const bundle = new Bundle(bytes);
    expect([...(bundle.column("times") ?? [])]).toEqual([1e12, 1e12 + 40_000]);
    expect([...(bundle.column("codes") ?? [])]).toEqual([0, -1, 0]);
    expect([...(bundle.column("wide") ?? [])]).toEqual([2 ** 53]);
    expect([...(bundle.column("huge") ?? [])]).toEqual([2n ** 62n]);
  });
  test("reverses base64 and zlib", async () => {
    const text = "eJzLSM3JyQcABiwCFQ=="; // "hello", by Python's zlib
    expect(new TextDecoder().decode(await inflate(fromBase64(text)))).toBe("hello");
  });
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

test("kinds are read by the names in the header", () => {
  const act = (kinds: string[]): EventSet =>
    new EventSet(
      "act",
      new Bundle<EventsHeader>(
        encode(
          { kinds, names: [], slices: { op: [], api: [], act: [] }, shown: {} },
          { "act.kind": { tag: "u8", values: [0, 1, 2] } },
        ),
      ),
    );
  expect([...(act([...KINDS]).kind ?? [])]).toEqual([0, 1, 2]);
  expect([...(act(["memset", "prefetch", "kernel"]).kind ?? [])]).toEqual([3, 0, 1]);
});
