import { expect, test } from "vitest";
import { EventSet } from "../../src/data/events.ts";
import { KINDS } from "../../src/data/kinds.ts";
import { Bundle } from "../../src/data/wire_format.ts";
import type { EventsHeader } from "../../src/data/wire_types.ts";
import { encode } from "../helpers.ts";

test("kinds are read by the names in the header", () => {
  const act = (kinds: string[]): EventSet =>
    new EventSet(
      "act",
      new Bundle<EventsHeader>(
        encode(
          { kinds, names: [], slices: { op: [], api: [], act: [] }, shown: {} },
          { "act.kind": { tag: "u8", values: [0, 1, 2] } },
        ),
      ),
    );
  expect([...(act([...KINDS]).kind ?? [])]).toEqual([0, 1, 2]);
  expect([...(act(["memset", "prefetch", "kernel"]).kind ?? [])]).toEqual([3, 0, 1]);
});
