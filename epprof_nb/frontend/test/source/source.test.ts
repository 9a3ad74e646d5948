// @vitest-environment node
import { describe, expect, test } from "vitest";
import type { SourceCell } from "../../src/data/wire_types.ts";
import { executions, hostTime, shareOfLines, splitLine } from "../../src/source/source.ts";

describe("a line's text", () => {
  test("is split at the syntax spans without losing any character", () => {
    expect(
      splitLine("for x in y", [
        [0, 3, "k"],
        [6, 8, "k"],
      ]),
    ).toEqual([
      ["for", "k"],
      [" x ", ""],
      ["in", "k"],
      [" y", ""],
    ]);
    expect(splitLine("", [])).toEqual([]);
  });
  test("is shown whole if spans do not fit", () => {
    expect(
      splitLine("abc", [
        [2, 9, "s"],
        [0, 1, "k"],
        [0, 1, "s"],
      ]),
    ).toEqual([
      ["a", "k"],
      ["bc", ""],
    ]);
  });
});

test("a line that only runs as part of a compiled function has no executions", () => {
  const totals = { line: 1, start: 0, end: 9, kernels: 1, copies: 0, bytes: 0, device_ns: 5 };
  const compiled = { ...totals, count: 0, host_ns: 0, top: [] };
  expect([executions(compiled), hostTime(compiled)]).toEqual(["", ""]);
  const run = { ...compiled, count: 2, host_ns: 30 };
  expect([executions(run), hostTime(run)]).toEqual(["2", "30 ns"]);
});

test("device time without a line is stated", () => {
  const totals = { line: 1, start: 0, end: 9, count: 1, host_ns: 9, kernels: 1, copies: 0 };
  const cell: SourceCell = {
    cell: "In[1]",
    file: false,
    first: 1,
    lines: ["f()"],
    spans: [[]],
    left_out: 0,
    device_ns: 1_000_000,
    totals: [{ ...totals, bytes: 0, device_ns: 5_000, top: [] }],
  };
  const called = { ...cell, cell: "model.py", file: true };
  expect(shareOfLines([cell, called])).toMatch(/^> 99 % of the device time \(995 µs\)/);
  expect(shareOfLines([{ ...cell, device_ns: 5_000 }])).toBe("");
  expect(shareOfLines([])).toBe("");
});
