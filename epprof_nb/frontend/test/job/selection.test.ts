import { expect, test } from "vitest";
import {
  cellAt,
  cellText,
  moved,
  ranksOf,
  type StripsData,
  selectionText,
  timesOf,
} from "../../src/job/selection.ts";

const data: StripsData = {
  left: 100,
  top: 20,
  plot: 200,
  row: 10,
  span: 1_000_000_000,
  labels: ["rank 0", "ranks 1\u20139", "rank 10"],
  ranks: [[0], [1, 2, 3, 4, 5, 6, 7, 8, 9], [10]],
  busy: [
    [100, 50, null, 0],
    [80, 80, 80, 80],
    [10, 20, 30, 40],
  ],
  waiting: [
    [0, 25, null, 0],
    [0, 0, 0, 0],
    [0, 0, 0, 0],
  ],
};

test("a point is in the cell below it, or in the nearest one", () => {
  expect(cellAt(data, 100, 20)).toEqual({ row: 0, bin: 0 });
  expect(cellAt(data, 299, 49)).toEqual({ row: 2, bin: 3 });
  expect(cellAt(data, 0, 0)).toEqual({ row: 0, bin: 0 });
  expect(cellAt(data, 999, 999)).toEqual({ row: 2, bin: 3 });
});

test("a cell moves within the strips", () => {
  expect(moved(data, { row: 1, bin: 1 }, 5, -9)).toEqual({ row: 2, bin: 0 });
  expect(moved(data, { row: 1, bin: 1 }, 0, Number.POSITIVE_INFINITY)).toEqual({ row: 1, bin: 3 });
});

test("a cell has the numbers of its rank", () => {
  expect(cellText(data, { row: 0, bin: 1 })).toBe(
    "rank 0 at 250 ms: devices busy 50 %, waiting for a later rank 25 %",
  );
  expect(cellText(data, { row: 0, bin: 2 })).toBe("rank 0 at 500 ms: not recorded");
});

test("a selection is the same from either corner", () => {
  const [one, other] = [
    { row: 2, bin: 2 },
    { row: 1, bin: 1 },
  ];
  for (const corners of [[one, other] as const, [other, one] as const]) {
    expect(timesOf(data, ...corners)).toEqual({ start: 250_000_000, end: 750_000_000 });
    expect(ranksOf(data, ...corners)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  }
});

test("the code opens the selection in the timeline, unless it has too many ranks", () => {
  expect(selectionText(data, { row: 0, bin: 3 }, { row: 0, bin: 2 })).toEqual({
    text: "500 ms to 1.00 s, rank 0",
    code: "job.window(500_000_000, 1_000_000_000, ranks=[0]).timeline()",
  });
  const many = selectionText(data, { row: 2, bin: 0 }, { row: 1, bin: 0 });
  expect(many.code).toBe("");
  expect(many.text).toContain("ranks 1\u20139 to rank 10: select at most 8 ranks");
});
