// Columns of chosen events, gathered from the blocks of a file.

import type { ColumnBundle } from "../wire_format.ts";
import type { EventsHeader, Prefix } from "../wire_types.ts";

export const PREFIXES: readonly Prefix[] = ["op", "api", "act"];

/** Events by position, ascending; if some are merged, the columns of their rectangles. */
export interface Chosen {
  positions: Float64Array;
  merged?: Record<"start" | "dur" | "members" | "cover", Float64Array>;
}

const LABELS: Record<Prefix, string> = { op: "ops", api: "API calls", act: "activities" };

type Slices = EventsHeader["slices"][Prefix];

export class Gathered implements ColumnBundle<EventsHeader> {
  readonly header: EventsHeader;
  readonly #columns = new Map<string, Float64Array | BigInt64Array>();

  constructor(
    header: EventsHeader,
    private readonly chosen: Record<Prefix, Chosen>,
    private readonly known: string[],
    /** Column of a block, by the number of the block. */
    private readonly block: (
      name: string,
      number: number,
    ) => Float64Array | BigInt64Array | undefined,
    private readonly size: number,
    /** Index of an op, by position, among the chosen ones; -1 for none. */
    private readonly owner: (position: number) => number,
  ) {
    const slices = {} as EventsHeader["slices"];
    const shown: EventsHeader["shown"] = {};
    for (const prefix of PREFIXES) {
      const { positions, merged } = chosen[prefix];
      slices[prefix] = slicesOf(header.slices[prefix], positions);
      const total = merged?.members.reduce((sum, members) => sum + members, 0);
      shown[LABELS[prefix]] = [positions.length, total ?? positions.length];
    }
    this.header = { ...header, slices, shown };
  }

  names(): string[] {
    return this.known;
  }

  column(name: string): Float64Array | BigInt64Array | undefined {
    let column = this.#columns.get(name);
    if (!column) {
      column = this.#gather(name);
      if (column) this.#columns.set(name, column);
    }
    return column;
  }

  #gather(name: string): Float64Array | BigInt64Array | undefined {
    const [prefix, field] = name.split(".") as [Prefix, string];
    const { positions, merged } = this.chosen[prefix];
    if (field === "row") return positions;
    const of = merged?.[field as "start"];
    if (of) return of;
    if (!this.known.includes(name)) return undefined;
    const values = new Float64Array(positions.length);
    let big: BigInt64Array | undefined;
    let current = -1;
    let column: Float64Array | BigInt64Array | undefined;
    for (let i = 0; i < values.length; i++) {
      const number = Math.floor(positions[i] / this.size);
      if (number !== current) column = this.block(name, number);
      current = number;
      const value = column?.[positions[i] - number * this.size] ?? -1;
      // If a block has big integers, the whole column has.
      if (typeof value === "bigint") big ??= BigInt64Array.from(values, BigInt);
      if (big) big[i] = BigInt(value);
      else values[i] = Number(value);
    }
    if (field === "op") return values.map((at) => this.owner(at));
    return big ?? values;
  }
}

/** Numbers of a column; `Float64Array.from()` alone would call a function for each of them. */
export function floats(column: Float64Array | BigInt64Array | undefined): Float64Array {
  return column instanceof Float64Array ? column : Float64Array.from(column ?? [], Number);
}

/** Slices of the chosen events, from the slices of all events. */
export function slicesOf(all: Slices, positions: Float64Array): Slices {
  const slices: Slices = [];
  let at = 0;
  for (const [lane, row, , end] of all) {
    const first = at;
    while (at < positions.length && positions[at] < end) at++;
    if (at > first) slices.push([lane, row, first, at]);
  }
  return slices;
}

/** Function that maps an op's position to the index of it, or of its nearest ancestor, in `chosen`. */
export function nearestChosen(
  chosen: Float64Array,
  ops: number,
  parent: (position: number) => number,
): (position: number) => number {
  const index = new Int32Array(ops).fill(-1);
  chosen.forEach((position, i) => {
    index[position] = i;
  });
  return (position) => {
    let at = position;
    while (at >= 0 && index[at] < 0) at = parent(at);
    return at >= 0 ? index[at] : -1;
  };
}
