import { describe, expect, test } from "vitest";
import { columnsOf, show } from "../src/breakdown.ts";
import { order } from "../src/sort.ts";

describe("sorting", () => {
  test("puts the missing last either way", () => {
    expect(order([3, null, 1, 2], false)).toEqual([2, 3, 0, 1]);
    expect(order([3, null, 1, 2], true)).toEqual([0, 3, 2, 1]);
  });
  test("keeps ties in order, and counts numbers in names", () => {
    expect(order([1, 1, 1], true)).toEqual([0, 1, 2]);
    expect(order(["k10", "k9", "k1"], false)).toEqual([2, 1, 0]);
  });
});

describe("columns", () => {
  test("that say nothing are left out, what is looked for comes first", () => {
    const table = {
      rows: 2,
      columns: [
        { name: "bytes", values: [0, 0] },
        { name: "cell", values: ["In[3]", null] },
        { name: "kernels", values: [1, 2] },
        { name: "device_ns", values: [5, 6] },
        { name: "name", values: ["a", "b"] },
      ],
    };
    expect(columnsOf(table).map(({ name }) => name)).toEqual(["name", "device_ns", "kernels"]);
  });
  test("show units by their names", () => {
    expect(show("device_ns", 1500)).toBe("1.50 µs");
    expect(show("bytes", 1500)).toBe("1.50 kB");
    expect(show("share", 0.5)).toBe("50.0 %");
    expect(show("count", 1500)).toBe("1,500");
    expect(show("line", 1500)).toBe("1500");
    expect(show("count", 0)).toBe("");
    expect(show("name", "<b>")).toBe("<b>");
  });
});
