// Sums over the parts of events within a time range, by kind, op and name.

import type { RangeBreakdown, RankedTotals } from "../by_range.ts";
import { KIND } from "../kinds.ts";

const TOP = 12;

type Totals = Pick<
  RangeBreakdown,
  "device_ns" | "kernels" | "copies" | "sets" | "bytes" | "ops" | "names"
>;

export class RangeSums {
  #ns = 0;
  #bytes = 0;
  readonly #counts = new Map<number, number>();
  readonly #ops = new Map<string, [count: number, ns: number]>();
  readonly #names = new Map<string, [count: number, ns: number]>();

  /** Add `count` activities of one kind, op and name, their time in the range and their bytes. */
  add(kind: number, op: string, name: string, count: number, ns: number, bytes: number): void {
    this.#ns += ns;
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + count);
    if (kind === KIND.memcpy) this.#bytes += bytes;
    addTo(this.#ops, op, count, ns);
    addTo(this.#names, name, count, ns);
  }

  totals(): Totals {
    const number = (kind: number): number => Math.round(this.#counts.get(kind) ?? 0);
    return {
      device_ns: Math.round(this.#ns),
      kernels: number(KIND.kernel),
      copies: number(KIND.memcpy),
      sets: number(KIND.memset),
      bytes: Math.round(this.#bytes),
      ops: top(this.#ops),
      names: top(this.#names),
    };
  }
}

function addTo(sums: Map<string, [number, number]>, name: string, count: number, ns: number): void {
  const sum = sums.get(name);
  if (sum) {
    sum[0] += count;
    sum[1] += ns;
  } else sums.set(name, [count, ns]);
}

function top(sums: Map<string, [number, number]>): RankedTotals {
  const rows = [...sums]
    .map(([name, [count, ns]]): RankedTotals["rows"][number] => [
      name,
      Math.round(count),
      Math.round(ns),
    ])
    .filter(([, count]) => count > 0);
  rows.sort((a, b) => b[2] - a[2] || b[1] - a[1]);
  return { rows: rows.slice(0, TOP), total: rows.length };
}
