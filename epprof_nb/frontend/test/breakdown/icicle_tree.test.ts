import { describe, expect, test } from "vitest";
import { IcicleLayout, Tree } from "../../src/breakdown/icicle_tree.ts";
import { queryForNode } from "../../src/breakdown/row_selection.ts";
import type { TreeData } from "../../src/data/wire_types.ts";
import { changeVariant, FIRST_CHANGE, SHADES } from "../../src/render/event_colours.ts";

/** session > (a > (gemm, copy), b > gemm), and a node for three merged ones below b. */
const DATA: TreeData = {
  names: ["session", "range", "kernel", "memcpy", "other", "a", "b", "gemm", "copy"],
  parent: [-1, 0, 0, 1, 1, 2, 2],
  level: [0, 1, 1, 2, 3, 2, 4],
  name: [0, 5, 6, 7, 8, 7, 4],
  count: [1, 2, 1, 4, 1, 1, 9],
  device_ns: [100, 30, 70, 10, 20, 60, 10],
  self_device_ns: [0, 30, 70, 10, 20, 60, 10],
  host_ns: [50, 40, 10, 0, 0, 0, 0],
  kernels: [5, 4, 1, 4, 0, 1, 0],
  bytes: [0, 0, 0, 0, 0, 0, 0],
  others: [0, 0, 0, 0, 0, 0, 3],
  paths: 9,
};
const tree = new Tree(DATA);

/** session > net > (backward, forward, net.a > backward); forward is the shorter one. */
const modules = new Tree({
  ...DATA,
  names: ["session", "module", "forward", "backward", "net", "net.a"],
  short_names: { 5: "a" },
  parent: [-1, 0, 1, 1, 1, 4],
  level: [0, 1, 3, 2, 1, 3],
  name: [0, 4, 3, 2, 5, 3],
  device_ns: [100, 100, 40, 30, 30, 30],
  others: [0, 0, 0, 0, 0, 0],
});

/** session > train (In[3]:7) > (gemm, model.py:2): a tree of stacks, without host times. */
const { host_ns: _, ...WITHOUT_HOST } = DATA;
const stacks = new Tree({
  ...WITHOUT_HOST,
  names: [
    "session",
    "frame",
    "kernel",
    "train",
    "forward",
    "gemm",
    "In[3]",
    "/a/model.py",
    "x = f()",
  ],
  parent: [-1, 0, 1, 1],
  level: [0, 1, 2, 1],
  name: [0, 3, 5, 4],
  device_ns: [70, 70, 70, 0],
  launches: [4, 4, 4, 0],
  waits: [3, 3, 0, 3],
  cell: [-1, 6, -1, 7],
  line: [-1, 7, -1, 2],
  text: [-1, 8, -1, -1],
  stack_id: [10, 11, null],
  stack_node: [1, 3, 0],
  others: [0, 0, 0, 0],
});

describe("the tree of stacks", () => {
  test("has the launches and waits as widths, and no host times", () => {
    expect([...stacks.values("launches")]).toEqual([4, 4, 4, 0]);
    expect([...stacks.values("waits")]).toEqual([3, 3, 0, 3]);
    expect([...stacks.values("host")]).toEqual([0, 0, 0, 0]);
    expect([...tree.values("waits")]).toEqual(DATA.kernels.map(() => 0));
  });
  test("knows the line of each frame", () => {
    expect(stacks.place(1)).toEqual(["In[3]", 7]);
    expect(stacks.place(3)).toEqual(["/a/model.py", 2]);
    expect(stacks.place(2)).toBeNull();
    expect(tree.place(1)).toBeNull();
    expect([1, 2, 3].map((node) => stacks.text(node))).toEqual(["x = f()", "", ""]);
  });
  test("names a frame like a traceback, without folders", () => {
    expect([0, 1, 2, 3].map((node) => stacks.name(node))).toEqual([
      "session",
      "train (In[3]:7)",
      "gemm",
      "forward (model.py:2)",
    ]);
    expect(stacks.title(3)).toBe("forward (/a/model.py:2)");
  });
  test("keeps the place of a frame readable, and says how often it called itself", () => {
    const names = stacks.data.names.map((name) => (name === "train" ? "\u202eniart" : name));
    const odd = new Tree({ ...stacks.data, names, recursion: [1, 1, 1, 1200] });
    expect(odd.name(1)).toBe("\u2068\u202eniart\u2069 (In[3]:7)");
    expect(odd.name(3)).toBe("forward (model.py:2) ×1,200");
  });
  test("has the kind of merged work", () => {
    const merged = new Tree({ ...stacks.data, others: [0, 0, 7, 0], kernels: [4, 4, 4, 0] });
    expect([...merged.kind]).toEqual([1, 1, 1, 0]);
  });
  test("selects what the stacks below a node launched, or where they waited", () => {
    const query = (node: number) => queryForNode(stacks.describe(node));
    const where = { what: "where" };
    expect(query(0)).toEqual({
      ...where,
      prefix: "act",
      equals: { stack_id: [10, 11, null] },
    });
    expect(query(1)).toEqual({ ...where, prefix: "act", equals: { stack_id: [10, 11] } });
    expect(query(2)).toEqual({
      ...where,
      prefix: "act",
      equals: { stack_id: [10], name: "gemm", kind: "kernel" },
    });
    const waiting = new Tree({ ...stacks.data, count: [4, 4, 4, 0] });
    expect(queryForNode(waiting.describe(3))).toEqual({
      ...where,
      prefix: "api",
      equals: { stack_id: [11] },
    });
  });
});

/** session > (a: 40 before and 60 after, b: added, c > gone: removed), device time in ns. */
const difference = (): Tree =>
  new Tree({
    ...WITHOUT_HOST,
    names: ["session", "frame", "kernel", "a", "b", "c", "gone"],
    parent: [-1, 0, 0, 0, 3],
    level: [0, 1, 1, 1, 2],
    name: [0, 3, 4, 5, 6],
    device_ns: [90, 60, 30, 0, 0],
    old_device_ns: [60, 40, 0, 20, 20],
    others: [0, 0, 0, 0, 0],
  });

describe("the tree of a difference", () => {
  test("is as wide as the new side, and has what was removed on request", () => {
    const tree = difference();
    expect([...tree.values("device")]).toEqual([90, 60, 30, 0, 0]);
    tree.withRemoved = true;
    expect([...tree.values("device")]).toEqual([110, 60, 30, 20, 20]);
    expect(new IcicleLayout(tree, "device").children(0)).toEqual([1, 2, 3]);
  });
  test("shows changes as text and as colour", () => {
    const tree = difference();
    const changes = [0, 1, 2, 3].map((node) => tree.change(node, "device"));
    expect(changes).toEqual(["+50 %", "+50 %", "new", "removed"]);
    const variants = [1, 2, 3].map((node) => tree.variant(node, "device"));
    expect(variants).toEqual([FIRST_CHANGE + 6, FIRST_CHANGE + 6, FIRST_CHANGE]);
    expect(tree.change(1, "waits")).toBe("");
    const { ops } = new IcicleLayout(tree, "device");
    expect(ops.label(ops.nodes.indexOf(2))).toBe("b new");
    expect(stacks.change(1, "device")).toBe("");
  });
  test("has a step of colour for each size of a change", () => {
    const steps = [0, 60, 90, 99, 100, 101, 110, 130, 160].map(
      (after) => changeVariant(100, after) - FIRST_CHANGE,
    );
    expect(steps).toEqual([0, 1, 2, 3, 3, 3, 4, 5, 6]);
    expect(changeVariant(0, 0)).toBe(FIRST_CHANGE + 3);
  });
});

describe("the tree", () => {
  test("has the hues of operators where these were sent", () => {
    const coloured = new Tree({ ...DATA, hue: [-1, 4, 11, -1, -1, -1, -1] });
    const { ops } = new IcicleLayout(coloured, "device");
    const variants = ops.nodes.map((node, i) => [node, ops.variant[i]]);
    expect(variants).toContainEqual([0, 0]);
    expect(variants).toContainEqual([1, SHADES + 4]);
    expect(variants).toContainEqual([2, SHADES + 11]);
    expect(new Set(new IcicleLayout(tree, "device").ops.variant)).toEqual(new Set([0]));
  });
  test("has depths, names, and the kind an op mostly launches", () => {
    expect([...tree.depth]).toEqual([0, 1, 1, 2, 2, 2, 2]);
    expect(tree.path(5)).toEqual([0, 2, 5]);
    expect(tree.name(6)).toBe("(3 smaller)");
    expect([...tree.kind]).toEqual([1, 2, 1, 1, 2, 1, 0]);
  });
  test("shows short names of kernels, and keeps the full ones", () => {
    const names = DATA.names.map((name, i) => (i === 7 ? "void blas::gemm<float>(int*)" : name));
    const short = new Tree({ ...DATA, names, short_names: { 7: "gemm [f32]" } });
    expect([short.name(3), short.title(3)]).toEqual(["gemm [f32]", "void blas::gemm<float>(int*)"]);
    expect(short.fullName(3)).toBe("void blas::gemm<float>(int*)");
    expect(short.title(6)).toBe("(3 smaller)");
    for (const text of ["[f32]", "blas::"]) {
      const { found } = short.find((name) => name.includes(text), short.values("device"));
      expect(found).toEqual(new Set([3, 5]));
    }
  });
  test("is searched without counting any time twice", () => {
    const device = tree.values("device");
    expect(tree.find((name) => name === "gemm", device)).toEqual({
      found: new Set([3, 5]),
      share: 0.7,
    });
    expect(tree.find((name) => "b gemm".includes(name), device).share).toBeCloseTo(0.8);
  });
});

describe("the icicle's boxes", () => {
  test("lie below their parents, largest first, merged ones last", () => {
    const { start, values } = new IcicleLayout(tree, "device");
    expect([...start]).toEqual([0, 70, 0, 90, 70, 0, 60]);
    expect([...values]).toEqual(DATA.device_ns);
  });
  test("of a module's own work are side by side, the forward pass first", () => {
    const { start } = new IcicleLayout(modules, "device");
    expect([...start.slice(2, 5)]).toEqual([60, 30, 0]);
    expect(modules.name(4)).toBe("a");
    // With what it calls.
    expect(["forward", "backward"].map((pass) => modules.ofPass(pass, 1))).toEqual([30, 70]);
  });
  test("are found at their positions", () => {
    const placed = new IcicleLayout(tree, "device");
    expect([0, 69, 70, 99].map((at) => placed.nodeAt(1, at))).toEqual([2, 2, 1, 1]);
    expect([0, 65, 70, 95].map((at) => placed.nodeAt(2, at))).toEqual([5, 6, 4, 3]);
    expect(placed.nodeAt(2, 100)).toBe(-1);
    expect(placed.nodeAt(7, 0)).toBe(-1);
  });
  test("of another measure omit nodes where it is zero", () => {
    const placed = new IcicleLayout(tree, "host");
    expect(placed.activities.nodes).toEqual([]);
    expect(placed.ops.nodes).toEqual([0, 1, 2]);
    expect(placed.nodeAt(1, 45)).toBe(2);
  });
  test("contain children that took longer on other threads", () => {
    const longer = new Tree({ ...DATA, host_ns: [50, 40, 30, 0, 0, 0, 0] });
    expect(longer.values("host")[0]).toBe(70);
    // Also if only a child of the child is longer.
    const deep = new Tree({ ...DATA, host_ns: [50, 20, 10, 60, 0, 0, 0] });
    expect([...deep.values("host").slice(0, 2)]).toEqual([70, 60]);
  });
});

describe("from a box to the timeline", () => {
  test("an op is queried by name, a kernel also by kind", () => {
    expect(queryForNode({ name: "forward", level: "range" })).toEqual({
      what: "where",
      prefix: "op",
      equals: { name: "forward" },
    });
    expect(queryForNode({ name: "gemm", level: "kernel" })).toEqual({
      what: "where",
      prefix: "act",
      equals: { name: "gemm", kind: "kernel" },
    });
    expect(queryForNode({ name: "(no op)", level: "none" })).toMatchObject({
      equals: { op_id: null },
    });
  });
  test("the work of a module is queried by its calls in the pass", () => {
    const op_type = (node: number): unknown => {
      const query = queryForNode(modules.describe(node));
      expect(query).toMatchObject({ prefix: "op", equals: { name: "net", category: "framework" } });
      return query.what === "where" && query.equals.op_type;
    };
    expect(op_type(1)).toEqual(["module", "compiled", "recompute", "backward"]);
    expect(op_type(2)).toEqual(["recompute", "backward"]);
    expect(op_type(3)).toEqual(["module", "compiled"]);
  });
});
