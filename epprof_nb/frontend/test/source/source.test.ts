// @vitest-environment node
import { describe, expect, test } from "vitest";
import { splitLine } from "../../src/source/source.ts";

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
