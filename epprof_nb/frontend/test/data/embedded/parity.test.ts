// The same queries, answered from the embedded events and by Python (tests/unit/views/wire/test_query_parity.py).

import { expect, test } from "vitest";
import fixture from "../../../../../tests/data/queries.json";
import { EmbeddedSource } from "../../../src/data/embedded_source.ts";
import type { SelectionQuery } from "../../../src/data/selection_queries.ts";
import { Bundle, fromBase64 } from "../../../src/data/wire_format.ts";
import type { Prefix, ProfileHeader } from "../../../src/data/wire_types.ts";

const source = new EmbeddedSource(new Bundle<ProfileHeader>(fromBase64(fixture.payload)));

interface Request {
  type: string;
  prefix?: Prefix;
  row?: number;
  start?: number;
  end?: number;
  selection?: SelectionQuery;
  number?: number;
  at?: number;
}

/** Send a request of the widget's channel to the embedded source. */
async function answer({ type, prefix, row, start, end, selection, number, at }: Request) {
  if (type === "related") {
    const ref = { prefix: prefix as Prefix, row: row as number };
    return {
      related: await source.related({ ...ref, name: "", start: 0, dur: 0, lane: 0, level: 0 }),
    };
  }
  if (type === "by_range") {
    return { by_range: await source.byRange({ start: start as number, end: end as number }) };
  }
  if (type === "memory_at") return { holders: await source.memoryAt(at as number) };
  const target = number !== undefined ? { number } : at !== undefined ? { at } : {};
  return source.seek(selection as SelectionQuery, target);
}

test.each(fixture.answers.map(({ request, answer }) => [JSON.stringify(request), request, answer]))(
  "%s",
  async (_, request, expected) => {
    expect(await answer(request as Request)).toEqual(expected);
  },
);
