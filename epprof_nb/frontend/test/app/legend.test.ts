import { expect, test } from "vitest";
import { legendKinds } from "../../src/app/legend.ts";

test("the legend has the kinds that occur, in its own order", () => {
  expect(legendKinds(["synchronization", "memcpy", "graph_launch"])).toEqual([
    "memcpy",
    "synchronization",
  ]);
  expect(legendKinds([])).toEqual([]);
});
