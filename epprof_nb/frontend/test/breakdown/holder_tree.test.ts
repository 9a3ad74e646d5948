import { expect, test } from "vitest";
import { type HolderNode, holderTree } from "../../src/breakdown/holder_tree.ts";

const tree = (node: HolderNode): unknown => [
  node.title,
  node.bytes,
  ...node.children.map((child) => tree(child)),
];

test("holders nest by pool, category, module, line and op", () => {
  const root = holderTree(
    {
      at: 0,
      pool: ["torch", "torch", "torch", null],
      device_id: [0, 0, 0, 0],
      category: ["activation", "activation", null, null],
      module: ["net.0.linear", "net.0", null, null],
      cell: [null, "In[1]", null, null],
      line: [null, 3, null, null],
      name: ["net.0.linear", "relu", "(before this profile)", "(op unknown)"],
      bytes: [8, 5, 4, 2],
      blocks: [1, 1, 1, 1],
    },
    "GPU",
  );
  expect(tree(root)).toEqual([
    "GPU",
    19,
    [
      "torch",
      17,
      [
        "activation",
        13,
        ["net", 13, ["net.0", 13, ["net.0.linear", 8], ["In[1]:3", 5, ["relu", 5]]]],
      ],
      ["before this profile", 4],
    ],
    ["unknown", 2, ["unknown", 2, ["(op unknown)", 2]]],
  ]);
});
