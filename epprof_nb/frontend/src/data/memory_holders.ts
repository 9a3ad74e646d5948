// Holders of memory at a time: one row per holder, as `prof.memory_at()` in Python.

import { firstAbove } from "../base/binary_search.ts";
import type { Bundle } from "./wire_format.ts";

type Names = (string | null)[];
type Numbers = (number | null)[];

/** Labels of the holders, by row. */
export interface HolderLabels {
  pool: Names;
  device_id: Numbers;
  category: Names;
  module: Names;
  cell: Names;
  line: Numbers;
  name: Names;
}

/** Holders at a time, greatest first. */
export interface Holders extends HolderLabels {
  /** The time, ns; of a page without all times, the nearest that it has. */
  at: number;
  bytes: number[];
  blocks: number[];
}

/** Header of a page's holders; `exact` if the page has all times. */
export interface HolderHeader {
  holders?: HolderLabels & { exact: boolean };
}

/** Holders at a time, from the changes in a page; null without recorded memory. */
export function holdersAt(bundle: Bundle<HolderHeader>, time: number): Holders | null {
  const labels = bundle.header.holders;
  const column = (name: string): Float64Array => {
    const values = bundle.column(`holders.${name}`) ?? [];
    return values instanceof Float64Array ? values : Float64Array.from(values, Number);
  };
  const t = column("t");
  if (!labels || !t.length) return null;
  let last = Math.max(firstAbove(t, time, 0, t.length) - 1, 0);
  if (!labels.exact && t[last + 1] - time < time - t[last]) last++;
  const [step, holder, bytes, blocks] = ["step", "holder", "bytes", "blocks"].map(column);
  const held = new Float64Array(labels.name.length);
  const count = new Float64Array(labels.name.length);
  // Before the first change, no memory is in use.
  for (let i = 0; i < step.length && step[i] <= last && time >= t[0]; i++) {
    held[holder[i]] += bytes[i];
    count[holder[i]] += blocks[i];
  }
  const rows = [...count.keys()].filter((i) => count[i] > 0).sort((a, b) => held[b] - held[a]);
  const taken = <T>(values: T[]): T[] => rows.map((row) => values[row]);
  return {
    at: labels.exact ? time : t[last],
    pool: taken(labels.pool),
    device_id: taken(labels.device_id),
    category: taken(labels.category),
    module: taken(labels.module),
    cell: taken(labels.cell),
    line: taken(labels.line),
    name: taken(labels.name),
    bytes: rows.map((row) => held[row]),
    blocks: rows.map((row) => count[row]),
  };
}
