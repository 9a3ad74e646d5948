// Bundles built by hand in the payload's layout.

import { type EventColumns, Events } from "../src/data/events.ts";
import { KINDS } from "../src/data/kinds.ts";
import { Bundle } from "../src/data/wire_format.ts";
import type { EventsHeader } from "../src/data/wire_types.ts";

type Tag = "u8" | "i32" | "f64" | "i64";
const ARRAYS = { u8: Uint8Array, i32: Int32Array, f64: Float64Array };

export interface Given {
  tag: Tag;
  values: number[] | bigint[];
  /** The first value, where `values` are differences. */
  from?: number;
}

export function encode(header: object, columns: Record<string, Given>): Uint8Array {
  const index: Record<string, [string, number, number, number | null]> = {};
  const parts: Uint8Array[] = [];
  let offset = 0;
  for (const [name, { tag, values, from }] of Object.entries(columns)) {
    const array =
      tag === "i64" ? BigInt64Array.from(values as bigint[]) : ARRAYS[tag].from(values as number[]);
    const raw = new Uint8Array(array.buffer);
    const width = array.BYTES_PER_ELEMENT;
    const planes = new Uint8Array(raw.length);
    for (let i = 0; i < values.length; i++) {
      for (let b = 0; b < width; b++) planes[b * values.length + i] = raw[i * width + b];
    }
    index[name] = [tag, offset, values.length, from ?? null];
    parts.push(planes);
    offset += planes.length;
  }
  const text = new TextEncoder().encode(JSON.stringify({ ...header, columns: index }));
  const out = new Uint8Array(4 + text.length + offset);
  new DataView(out.buffer).setUint32(0, text.length, true);
  out.set(text, 4);
  let at = 4 + text.length;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** Columns of a table, some of them replaced. */
export function columns(set: EventColumns, replaced: Partial<EventColumns> = {}): EventColumns {
  const { prefix, start, dur, reach, kind } = set;
  const name = (column: string, event: number): string => set.name(column, event);
  const label = (event: number): string => set.label(event);
  return { prefix, start, dur, reach, kind, name, label, ...replaced };
}

/** Events of one op row and one stream: [start, duration] pairs; activities belong to `owners`. */
export function events(
  ops: [number, number, number][],
  acts: [number, number][],
  owners: number[] = [],
): Events {
  const bytes = encode(
    {
      kinds: [...KINDS],
      names: ["a", "b"],
      slices: { op: [[0, 0, 0, ops.length]], api: [], act: [[1, 0, 0, acts.length]] },
      shown: { activities: [acts.length, acts.length] },
    },
    {
      "op.start": { tag: "f64", values: ops.map((o) => o[0]) },
      "op.dur": { tag: "f64", values: ops.map((o) => o[1]) },
      "op.op": { tag: "i32", values: ops.map((o) => o[2]) },
      "act.start": { tag: "f64", values: acts.map((a) => a[0]) },
      "act.dur": { tag: "f64", values: acts.map((a) => a[1]) },
      "act.op": { tag: "i32", values: acts.map((_, i) => owners[i] ?? -1) },
      "act.kind": { tag: "u8", values: acts.map(() => 1) },
      "act.name": { tag: "i32", values: acts.map((_, i) => (i % 3) - 1) },
      "act.correlation_id": { tag: "i32", values: acts.map((_, i) => i + 100) },
    },
  );
  return new Events(new Bundle<EventsHeader>(bytes));
}
