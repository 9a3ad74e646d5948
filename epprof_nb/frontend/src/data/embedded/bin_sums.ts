// Sums of device work by time bin, as Python's analysis/breakdowns/bin_sums.py describes them.

import type { Range } from "../../base/time_scale.ts";
import { kindCode } from "../kinds.ts";
import type { ColumnBundle } from "../wire_format.ts";
import type { ProfileHeader } from "../wire_types.ts";
import { floats } from "./gathered.ts";
import type { RangeSums } from "./range_sums.ts";

/** Whole bins of a range, and the parts of bins at its ends. */
interface Division {
  /** First and last + 1 whole bin; equal if there is none. */
  first: number;
  end: number;
  parts: { bin: number; part: Range }[];
}

export class Bins {
  readonly edges: Float64Array;
  readonly #column: (name: string) => Float64Array;
  readonly #names: string[];
  readonly #kinds: number[];
  readonly #devices: number[];

  constructor(bundle: ColumnBundle<ProfileHeader>, header: NonNullable<ProfileHeader["bins"]>) {
    this.#column = (name) => floats(bundle.column(`bins.${name}`));
    this.edges = this.#column("edges");
    this.#names = header.names;
    this.#kinds = header.kinds.map(kindCode);
    this.#devices = header.devices;
  }

  /** Mean length of the bins. */
  get length(): number {
    return (this.edges[this.edges.length - 1] - this.edges[0]) / (this.edges.length - 1);
  }

  divide({ start, end }: Range): Division {
    const { edges } = this;
    const last = edges.length - 1;
    let first = 0;
    while (first < last && edges[first] < start) first++;
    let stop = last;
    while (stop > 0 && edges[stop] > end) stop--;
    // The range lies within one bin.
    if (stop < first) return { first, end: first, parts: [{ bin: stop, part: { start, end } }] };
    const parts: Division["parts"] = [];
    if (start < edges[first] && first > 0)
      parts.push({ bin: first - 1, part: { start, end: edges[first] } });
    if (end > edges[stop] && stop < last)
      parts.push({ bin: stop, part: { start: edges[stop], end } });
    return { first, end: stop, parts };
  }

  /**
   * Add bins [first, end), and the work that runs into them if `running`. `share` scales the sums of
   * a bin.
   */
  add(sums: RangeSums, first: number, end: number, running: boolean, share = 1): void {
    const column = this.#column;
    const [bin, group] = [column("bin"), column("group")];
    const [started, before] = [column("started"), column("running")];
    const [sizes, sizesBefore] = [column("started_bytes"), column("running_bytes")];
    const [kind, op, name, ns] = [column("kind"), column("op"), column("name"), column("ns")];
    for (let i = 0; i < bin.length; i++) {
      if (bin[i] < first || bin[i] >= end) continue;
      const of = group[i];
      const runs = running && bin[i] === first;
      sums.add(
        this.#kinds[kind[of]],
        this.#names[op[of]],
        this.#names[name[of]],
        share * started[i] + (runs ? before[i] : 0),
        share * ns[i],
        share * sizes[i] + (runs ? sizesBefore[i] : 0),
      );
    }
  }

  /** Busy time of a device in the bins [first, end). */
  busy(device: number, first: number, end: number): number {
    const busy = this.#column(`busy.${this.#devices.indexOf(device)}`);
    return first < end ? busy[end] - busy[first] : 0;
  }
}
