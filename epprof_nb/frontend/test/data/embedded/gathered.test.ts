import { expect, test } from "vitest";
import { Gathered } from "../../../src/data/embedded/gathered.ts";
import type { EventsHeader } from "../../../src/data/wire_types.ts";

test("a column with big integers in a later block has big integers only", () => {
  const blocks = [Float64Array.of(1, 2), BigInt64Array.of(2n ** 60n, -1n)];
  const none = { positions: new Float64Array() };
  const chosen = { op: none, api: none, act: { positions: Float64Array.of(0, 1, 2) } };
  const header = { slices: { op: [], api: [], act: [[0, 0, 0, 4]] } } as unknown as EventsHeader;
  const known = ["act.bytes"];
  const gathered = new Gathered(
    header,
    chosen,
    known,
    (_, i) => blocks[i],
    2,
    () => -1,
  );
  expect(gathered.column("act.bytes")).toEqual(BigInt64Array.of(1n, 2n, 2n ** 60n));
});
