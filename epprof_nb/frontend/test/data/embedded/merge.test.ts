import { expect, test, vi } from "vitest";
import type { Gathered } from "../../../src/data/embedded/gathered.ts";
import { mergeIntoBins } from "../../../src/data/embedded/merge.ts";
import { Bundle } from "../../../src/data/wire_format.ts";
import type { EventsHeader } from "../../../src/data/wire_types.ts";
import { encode } from "../../helpers.ts";

/** Merge events of one row, given as [start, duration], into bins of 100 ns. */
function merged(events: [number, number][], bins: number) {
  const numbers = (at: 0 | 1) => ({ tag: "f64" as const, values: events.map((e) => e[at]) });
  const columns = { "act.start": numbers(0), "act.dur": numbers(1) };
  const gathered = new Bundle<EventsHeader>(encode({}, columns)) as unknown as Gathered;
  const positions = Float64Array.from(events, (_, i) => 10 + i);
  const view = { start: 0, end: 100 * bins };
  const slices: EventsHeader["slices"]["act"] = [[0, 0, 0, events.length]];
  const found = mergeIntoBins(gathered, "act", { positions }, slices, view, bins);
  const { start, dur, members, cover } = found.merged ?? {};
  const rows = [found.positions, start, dur, members, cover].map((of) => [...(of ?? [])]);
  return rows[0].map((_, i) => rows.map((of) => of[i]));
}

test("events that start in one bin are a rectangle with the position of the longest", () => {
  const events: [number, number][] = [
    [0, 5],
    [10, 20],
    [40, 1],
    [120, 5],
  ];
  expect(merged(events, 1)).toEqual([
    [11, 0, 41, 3, 26],
    [13, 120, 5, 1, 5],
  ]);
});

test("a rectangle contains events that overlap, and covers their time once", () => {
  expect(
    merged(
      [
        [0, 60],
        [10, 5],
        [20, 50],
      ],
      1,
    ),
  ).toEqual([[10, 0, 70, 3, 70]]);
  expect(
    merged(
      [
        [0, 60],
        [10, 5],
        [20, 10],
      ],
      1,
    ),
  ).toEqual([[10, 0, 60, 3, 60]]);
});

test("a long event and few events are not merged", () => {
  const long = merged(
    [
      [0, 5],
      [10, 100],
      [20, 5],
    ],
    1,
  );
  expect(long.map(([position, , , members]) => [position, members])).toEqual([
    [10, 1],
    [11, 1],
    [12, 1],
  ]);
  expect(
    merged(
      [
        [0, 5],
        [10, 5],
      ],
      1,
    ),
  ).toHaveLength(2);
});

test("no function is called for each event, of which a page has millions", () => {
  const from = vi.spyOn(Float64Array, "from");
  const events = Array.from({ length: 50 }, (_, i): [number, number] => [2 * i, 1]);
  expect(merged(events, 1)).toEqual([[10, 0, 99, 50, 50]]);
  const copies = from.mock.calls.filter(([of, make]) => of instanceof Float64Array && make);
  from.mockRestore();
  expect(copies).toEqual([]);
});
