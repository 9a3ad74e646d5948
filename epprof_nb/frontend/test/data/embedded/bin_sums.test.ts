import { expect, test } from "vitest";
import { Bins } from "../../../src/data/embedded/bin_sums.ts";
import { Bundle } from "../../../src/data/wire_format.ts";
import type { ProfileHeader } from "../../../src/data/wire_types.ts";
import { encode } from "../../helpers.ts";

const bytes = encode({}, { "bins.edges": { tag: "f64", values: [0, 10, 20, 30] } });
const bins = new Bins(new Bundle<ProfileHeader>(bytes), { kinds: [], names: [], devices: [] });

test("a range from edge to edge has whole bins only", () => {
  expect(bins.divide({ start: 0, end: 30 })).toEqual({ first: 0, end: 3, parts: [] });
  expect(bins.divide({ start: 10, end: 20 })).toEqual({ first: 1, end: 2, parts: [] });
});

test("a range between edges has the parts of bins at its ends", () => {
  expect(bins.divide({ start: 5, end: 25 })).toEqual({
    first: 1,
    end: 2,
    parts: [
      { bin: 0, part: { start: 5, end: 10 } },
      { bin: 2, part: { start: 20, end: 25 } },
    ],
  });
});

test("a range within a bin is a part of it", () => {
  const part = { start: 12, end: 18 };
  expect(bins.divide(part)).toEqual({ first: 2, end: 2, parts: [{ bin: 1, part }] });
});
