import { describe, expect, test } from "vitest";
import {
  fittingColumns,
  formatCell,
  informativeColumns,
} from "../../src/breakdown/column_specs.ts";
import { csv, markdown, python, pythonString } from "../../src/breakdown/exported_rows.ts";
import { filterAndSort } from "../../src/breakdown/filter.ts";
import { queryForRow } from "../../src/breakdown/row_selection.ts";
import { sortedRows } from "../../src/breakdown/sort.ts";

describe("sorting", () => {
  test("puts missing values last in both directions", () => {
    expect(sortedRows([3, null, 1, 2], false)).toEqual([2, 3, 0, 1]);
    expect(sortedRows([3, null, 1, 2], true)).toEqual([0, 3, 2, 1]);
  });
  test("keeps ties in order, and compares numbers in names by value", () => {
    expect(sortedRows([1, 1, 1], true)).toEqual([0, 1, 2]);
    expect(sortedRows(["k10", "k9", "k1"], false)).toEqual([2, 1, 0]);
  });
});

describe("columns", () => {
  test("without information are omitted, important ones come first", () => {
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
    expect(informativeColumns(table).map(({ name }) => name)).toEqual([
      "name",
      "device_ns",
      "kernels",
    ]);
  });
  test("of a node begin with what ran where, how long and how often", () => {
    const names =
      "name op_type provider count device_ns share host_ns session node_index fell_back";
    const columns = names.split(" ").map((name) => ({ name, values: [1] }));
    expect(informativeColumns({ rows: 1, columns }).map(({ name }) => name)).toEqual(
      "name op_type provider share device_ns host_ns count session node_index fell_back".split(" "),
    );
  });
  test("show the short names of kernels instead of the full ones", () => {
    const table = {
      rows: 1,
      columns: [
        { name: "name", values: ["void blas::gemm<float>(int*)"] },
        { name: "short_name", values: ["gemm [f32]"] },
        { name: "count", values: [2] },
      ],
    };
    expect(informativeColumns(table).map(({ name }) => name)).toEqual(["short_name", "count"]);
    const sort = { column: "count", descending: true };
    for (const pattern of ["blas::", "f32]"])
      expect(filterAndSort(table, sort, pattern).rows).toEqual([0]);
    expect(filterAndSort(table, sort, "f64").rows).toEqual([]);
  });
  test("have units by their names", () => {
    expect(formatCell("device_ns", 1500)).toBe("1.50 µs");
    expect(formatCell("bytes", 1500)).toBe("1.50 kB");
    expect(formatCell("share", 0.5)).toBe("50 %");
    expect(formatCell("count", 1500)).toBe("1,500");
    expect(formatCell("line", 1500)).toBe("1500");
    expect(formatCell("count", 0)).toBe("");
    expect(formatCell("name", "<b>")).toBe("<b>");
  });
  test("that fit are the most important ones in display order; names stay readable", () => {
    const table = {
      rows: 1,
      columns: [
        { name: "name", values: ["a_kernel_with_a_long_name".repeat(4)] },
        { name: "count", values: [12] },
        { name: "device_ns", values: [5e6] },
        { name: "share", values: [0.5] },
        { name: "max_device_ns", values: [5e6] },
        { name: "grid", values: ["1 × 1 × 1"] },
      ],
    };
    const names = (width: number) => {
      const { columns, letters } = fittingColumns(informativeColumns(table), "kernel", [0], width);
      expect(letters).toBeGreaterThanOrEqual(18);
      return columns.map(({ name }) => name);
    };
    expect(names(2000)).toEqual(["name", "share", "device_ns", "count", "max_device_ns", "grid"]);
    // Less important columns are omitted if names would be elided for them.
    expect(names(900)).toEqual(["name", "share", "device_ns", "count"]);
    expect(names(360)).toEqual(["name", "share", "device_ns"]);
    expect(names(100)).toEqual(["name"]);
  });
});

describe("filtering", () => {
  const table = {
    rows: 3,
    columns: [
      { name: "name", values: ["gemm<float>(int)", "Softmax", "copy"] },
      { name: "count", values: [1, 3, 2] },
    ],
  };
  const found = (pattern: string) =>
    filterAndSort(table, { column: "count", descending: true }, pattern).rows;
  test("keeps the order, accepts text and regular expressions, ignores case", () => {
    expect(found("")).toEqual([1, 2, 0]);
    expect(found("o")).toEqual([1, 2, 0]);
    expect(found("^(soft|gemm)")).toEqual([1, 0]);
    expect(found("GEMM<float>(int)")).toEqual([0]);
    expect(found("nothing")).toEqual([]);
  });
  test("reports an invalid regular expression and searches for the text", () => {
    const { rows, note } = filterAndSort(table, { column: "name", descending: false }, "float>(");
    expect(rows).toEqual([0]);
    expect(note).toContain("Not a regular expression");
  });
  test("uses as text a pattern that might never finish", () => {
    const long = { rows: 1, columns: [{ name: "name", values: [`${"a".repeat(200)}!`] }] };
    const { rows, note } = filterAndSort(long, { column: "name", descending: false }, "(a+)+$");
    expect(rows).toEqual([]);
    expect(note).toContain("Searched as plain text");
  });
});

describe("copying", () => {
  const columns = [
    { name: "name", values: ['a "b", <c>|', "=1+1", "plain"] },
    { name: "device_ns", values: [1500, 0, null] },
  ];
  test("as CSV keeps integers and disarms formulas", () => {
    expect(csv(columns, [2, 0, 1])).toBe(
      'name,device_ns\r\nplain,\r\n"a ""b"", <c>|",1500\r\n\'=1+1,0\r\n',
    );
  });
  test("as Markdown has units and escapes special characters", () => {
    expect(markdown(columns, [0], "op").split("\n")).toEqual([
      "| name | device |",
      "| :-- | --: |",
      '| a "b", &lt;c&gt;\\| | 1.50 µs |',
      "",
    ]);
  });
  test("as Python selects the events of a row", () => {
    expect(python(queryForRow("kernel", { name: 'a"b' }))).toBe(
      'prof.activities[lambda rows: (rows["name"] == "a\\"b") & (rows["kind"] == "kernel")]',
    );
    expect(python(queryForRow("line", { cell: "In[3]", line: 7 }))).toBe(
      'prof.ops[lambda rows: (rows["cell"] == "In[3]") & (rows["line"] == 7)]',
    );
    expect(python(queryForRow("op", { name: "(no op)", count: 0 }))).toBe(
      'prof.activities[lambda rows: rows["op_id"].isna() & rows["kind"].isin(["kernel", "memcpy", "memset"])]',
    );
    expect(python(queryForRow("module", { path: "net.a", type: "module" }))).toBe(
      'prof.ops[lambda rows: (rows["name"] == "net.a") & rows["op_type"].isin(["module", "compiled", "recompute", "backward"]) & (rows["category"] == "framework")]',
    );
    expect(queryForRow("module", { path: "net.(a + b)", type: "fused" })).toMatchObject({
      equals: { name: "net.(a + b)", op_type: ["fused", "fused_backward"] },
    });
    expect(python({ what: "where", prefix: "act", equals: { stack_id: [null, 3] } })).toBe(
      'prof.activities[lambda rows: (rows["stack_id"].isin([3]) | rows["stack_id"].isna())]',
    );
    expect(python(queryForRow("kernel", { name: "x".repeat(600) }))).toBeNull();
    expect(queryForRow("module", { path: "(outside of modules)", type: null })).toBeNull();
  });
  test("as Python is ASCII and stays inside its quotes", () => {
    expect(pythonString('a"\\\n\u202e😀')).toBe('"a\\"\\\\\\u000a\\u202e\\U0001f600"');
  });
});
