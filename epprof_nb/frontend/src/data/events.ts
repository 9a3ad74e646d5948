// Events of a window: the three tables of a bundle, their columns and rows.

import { kindCode } from "./kinds.ts";
import type { ColumnBundle } from "./wire_format.ts";
import type { Cell, EventsHeader, Prefix } from "./wire_types.ts";

/** Columns of events that a renderer can draw. */
export interface EventColumns {
  readonly prefix: Prefix;
  readonly start: Float64Array;
  readonly dur: Float64Array;
  /** Latest end among the event and those before it in its slice. */
  readonly reach: Float64Array;
  readonly kind: Float64Array | undefined;
  /** Variant of each event's colour, see render/event_colours.ts. */
  readonly variant?: Uint8Array | undefined;
  readonly members?: Float64Array | undefined;
  readonly cover?: Float64Array | undefined;
  name(column: string, event: number): string;
  /** Name to show on an event: of a kernel its short name. */
  label(event: number): string;
  /** Distinct labels of the events [first, end). */
  labels?(first: number, end: number): string[];
}

/** Events [first, end) of one row of a table, in start order. */
export interface RowSlice {
  readonly set: EventColumns;
  readonly first: number;
  readonly end: number;
}

/** Events of one row of a lane, in start order; row -1 is the lane's foot. */
export interface LaneSlice {
  set: EventSet;
  lane: number;
  row: number;
  first: number;
  end: number;
}

const EMPTY = new Float64Array(0);

/** Events of one table. */
export class EventSet {
  readonly start: Float64Array;
  readonly dur: Float64Array;
  /** Latest end among this event and those before it in its slice; makes ends searchable. */
  readonly reach: Float64Array;
  readonly kind: Float64Array | undefined;
  /** Index of the op that launched it, or of an op's parent; -1 for none. */
  readonly op: Float64Array;
  /** Number of events each rectangle stands for; undefined if each is one event. */
  readonly members: Float64Array | undefined;
  /** Covered time of each rectangle in ns; undefined if each is one event. */
  readonly cover: Float64Array | undefined;
  /** Row in Python's table of the event, or of the longest merged one. */
  readonly row: Float64Array | undefined;
  /** 1 for each highlighted rectangle, in a window requested with a selection. */
  readonly highlighted: Float64Array | undefined;
  /** 1 for each event among the rows that were passed to Python to select. */
  readonly pinned: Float64Array | undefined;
  /** Rank of the operator of a node; -1 for other ops. Undefined if there are no nodes. */
  readonly operator: Float64Array | undefined;
  readonly slices: LaneSlice[];
  variant: Uint8Array | undefined;

  constructor(
    readonly prefix: Prefix,
    private readonly bundle: ColumnBundle<EventsHeader>,
  ) {
    this.start = this.#numbers("start") ?? EMPTY;
    this.dur = this.#numbers("dur") ?? EMPTY;
    this.kind = this.#kinds();
    this.op = this.#numbers("op") ?? EMPTY;
    this.members = this.#numbers("members");
    this.cover = this.#numbers("cover");
    this.row = this.#numbers("row");
    this.highlighted = this.#numbers("highlighted");
    this.pinned = this.#numbers("pinned");
    this.operator = this.#numbers("operator");
    this.slices = (bundle.header.slices[prefix] ?? []).map(([lane, row, first, end]) => ({
      set: this,
      lane,
      row,
      first,
      end,
    }));
    this.reach = new Float64Array(this.start.length);
    for (const { first, end } of this.slices) {
      let latest = Number.NEGATIVE_INFINITY;
      for (let i = first; i < end; i++) {
        latest = Math.max(latest, this.start[i] + this.dur[i]);
        this.reach[i] = latest;
      }
    }
  }

  get length(): number {
    return this.start.length;
  }

  #numbers(name: string): Float64Array | undefined {
    const column = this.bundle.column(`${this.prefix}.${name}`);
    // Values beyond the precision of a double are still drawn to the right pixel.
    return column instanceof BigInt64Array ? Float64Array.from(column, Number) : column;
  }

  /** Kinds as codes of the viewer, see kinds.ts. */
  #kinds(): Float64Array | undefined {
    const codes = this.bundle.header.kinds.map(kindCode);
    const column = this.#numbers("kind");
    return codes.every((code, i) => code === i) ? column : column?.map((i) => codes[i] ?? 0);
  }

  number(name: string, i: number): number | bigint | undefined {
    return this.bundle.column(`${this.prefix}.${name}`)?.[i];
  }

  /** Index of a name in the bundle's names; -1 if missing. */
  code(column: string, i: number): number {
    return Number(this.number(column, i) ?? -1);
  }

  /** Name in a column of names; empty if missing. */
  name(column: string, i: number): string {
    const code = this.code(column, i);
    return code < 0 ? "" : (this.bundle.header.names[code] ?? "");
  }

  /** Name to show on an event: of a kernel its short name. */
  label(event: number): string {
    const code = this.code("name", event);
    return this.bundle.header.short_names?.[code] ?? this.name("name", event);
  }

  /** Distinct labels of the events [first, end). */
  labels(first: number, end: number): string[] {
    const codes = this.bundle.column(`${this.prefix}.name`) ?? EMPTY;
    const all = this.bundle.header.names;
    const seen = new Uint8Array(all.length);
    for (let i = first; i < end; i++) seen[Number(codes[i])] = 1;
    const short = this.bundle.header.short_names;
    return all.flatMap((name, code) => (seen[code] ? [short?.[code] ?? name] : []));
  }

  /** Whether a column contains names. */
  named(column: string): boolean {
    return this.bundle.header.texts?.includes(`${this.prefix}.${column}`) ?? false;
  }

  /** Names of the sent columns, without the table's prefix. */
  columns(): string[] {
    const lead = `${this.prefix}.`;
    return this.bundle
      .names()
      .filter((name) => name.startsWith(lead))
      .map((name) => name.slice(lead.length));
  }
}

export interface Hit {
  set: EventSet;
  event: number;
}

/** Masks of the highlighted events by table: 1 for each highlighted event. */
export interface HighlightMasks {
  op: Uint8Array;
  api: Uint8Array;
  act: Uint8Array;
}

/** Highlight of the current selection. */
export interface Highlight extends HighlightMasks {
  /** The clicked event, drawn with an outline. */
  outlined: { prefix: Prefix; event: number } | null;
}

/** Fields of an event as in the DataFrame: column to number or text, without missing ones. */
export type Fields = Record<string, Cell | bigint>;

/** The three event tables of a bundle. */
export class Events {
  readonly counts: EventsHeader["shown"];
  /** All names that the columns refer to, and the short names of kernels by index. */
  readonly names: string[];
  readonly shortNames: Record<number, string>;
  /**
   * Key of the selection that the sets' `highlighted` belongs to, in a window requested with one.
   */
  highlightKey = "";
  #children: number[][] | undefined;
  readonly #sets = new Map<Prefix, EventSet>();

  constructor(private readonly bundle: ColumnBundle<EventsHeader>) {
    this.counts = bundle.header.shown;
    this.names = bundle.header.names;
    this.shortNames = bundle.header.short_names ?? {};
  }

  get op(): EventSet {
    return this.#set("op");
  }

  get api(): EventSet {
    return this.#set("api");
  }

  get act(): EventSet {
    return this.#set("act");
  }

  /** Created on first use, because a prefetched window may never be drawn. */
  #set(prefix: Prefix): EventSet {
    let set = this.#sets.get(prefix);
    if (!set) {
      set = new EventSet(prefix, this.bundle);
      this.#sets.set(prefix, set);
    }
    return set;
  }

  sets(): EventSet[] {
    return [this.op, this.api, this.act];
  }

  /** Whether some rectangles stand for several events. */
  get merged(): boolean {
    return Object.values(this.counts).some(([sent, total]) => sent < total);
  }

  /** The op and its ancestors, outermost first. */
  chain(op: number): number[] {
    const chain: number[] = [];
    for (let at = op; at >= 0 && chain.length < 1000; at = this.op.op[at]) chain.unshift(at);
    return chain;
  }

  /** The ops and all their descendants. */
  subtree(ops: Iterable<number>): Set<number> {
    if (!this.#children) {
      this.#children = Array.from({ length: this.op.length }, () => []);
      this.op.op.forEach((parent, child) => {
        if (parent >= 0) this.#children?.[parent].push(child);
      });
    }
    const result = new Set<number>(ops);
    for (const at of result) for (const child of this.#children[at]) result.add(child);
    return result;
  }
}
