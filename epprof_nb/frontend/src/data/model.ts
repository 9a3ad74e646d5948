// What the viewer shows, typed: the overview of a profile and the events of a window.

import type { Bundle } from "./wire_format.ts";

export type Kind = 0 | 1 | 2 | 3 | 4 | 5;
export const KIND_NAMES = ["other", "kernel", "copy", "set", "wait", "graph launch"] as const;

export interface Lane {
  kind: "ops" | "api" | "stream";
  label: string;
  title: string;
  rows: number;
  device: number;
  thread: number;
}

export type Cell = string | number | boolean | null;
export interface TableData {
  columns: { name: string; values: Cell[] }[];
  /** Rows of the whole table; those sent may be fewer. */
  rows: number;
  /** Rows that the asked pattern left, where Python filtered; and why it is read as text only. */
  found?: number;
  note?: string;
}

export interface LineTotals {
  line: number;
  start: number;
  end: number;
  count: number;
  device_ns: number;
  host_ns: number;
  kernels: number;
  copies: number;
  bytes: number;
  top: [name: string, count: number, ns: number][];
}

/** A stretch of a line to colour: a keyword, a string or a comment. */
export type SyntaxSpan = [start: number, end: number, kind: "k" | "s" | "c"];

/** A cell, or a function that stands in a file. */
export interface SourceCell {
  cell: string;
  file: boolean;
  /** Number of the first line. */
  first: number;
  lines: string[];
  spans: SyntaxSpan[][];
  left_out: number;
  totals: LineTotals[];
}

export interface Finding {
  text: string;
  start: number;
  end: number;
}

export type Prefix = "op" | "api" | "act";

export interface EventsHeader {
  names: string[];
  /** Columns whose numbers are positions in `names`. */
  texts?: string[];
  slices: Record<Prefix, [lane: number, row: number, first: number, end: number][]>;
  shown: Record<string, [sent: number, total: number]>;
}

/** A counter that the profile has: of which device, and what it counts. */
export interface Counter {
  what: "busy" | "launches" | "copied";
  device: number;
  name: string;
}

/** As views/tree.py sends it: one value a node, parents before their children. */
export interface TreeData {
  names: string[];
  parent: number[];
  level: number[];
  name: number[];
  count: number[];
  device_ns: number[];
  self_device_ns: number[];
  host_ns: number[];
  kernels: number[];
  bytes: number[];
  /** How many paths a node stands for; 0 for a path itself. */
  others: number[];
  paths: number;
}

/** A number of the summary that leads to what it counts. */
export interface Count {
  what: "kernel" | "memcpy" | "memset" | "gaps" | "stray";
  text: string;
}

/** One event, wherever it is: drawn now or not. */
export interface EventRef {
  prefix: Prefix;
  /** Row in Python's table; in a static page the position among what it embeds. */
  row: number;
  name: string;
  start: number;
  dur: number;
  /** Lane and row of the lane it is drawn in; level -1 is the lane's foot, lane -1 nowhere. */
  lane: number;
  level: number;
}

/** How many events a selection has, where they lie, and the one that was asked for. */
export interface SeekResult {
  count: number;
  start: number | null;
  end: number | null;
  number: number | null;
  event: EventRef | null;
  /** Whether some were counted with rectangles that stand for several events. */
  about?: boolean;
}

export interface Overview extends EventsHeader {
  range: [number, number];
  summary: {
    wall: string;
    busy: { label: string; name: string; share: number; text: string }[];
    counts: Count[];
    quality: string;
    stray: Count | null;
    incomplete: boolean;
    empty: string | null;
    error: string | null;
    device_word: string;
    notes: string[];
  };
  findings: Finding[];
  /** The idle stretches that the summary counts, the longest where there are very many. */
  gaps: [start: number, end: number][];
  /** Rows that Python was given to select, and how many of them are embedded. */
  given?: SeekResult & { sent: number };
  lanes: Lane[];
  counters: Counter[];
  /** What the profile can be broken down by. */
  breakdowns: string[];
  tables: Record<string, TableData>;
  tree: TreeData;
  source: SourceCell[];
}

/** Columns of events, as an EventSet has them; whoever has such columns can have them drawn. */
export interface EventColumns {
  readonly prefix: Prefix;
  readonly start: Float64Array;
  readonly dur: Float64Array;
  /** Latest end among the event and those before it in its stretch. */
  readonly reach: Float64Array;
  readonly kind: Float64Array | undefined;
  readonly members?: Float64Array | undefined;
  readonly cover?: Float64Array | undefined;
  name(column: string, event: number): string;
  /** The names that events [first, end) have, each once. */
  names?(first: number, end: number): string[];
}

/** Events [first, end) of a table, in start order: those of one row. */
export interface RowSlice {
  readonly set: EventColumns;
  readonly first: number;
  readonly end: number;
}

/** A stretch of events of one lane and row, in start order; row -1 is the lane's foot. */
export interface LaneSlice {
  set: EventSet;
  lane: number;
  row: number;
  first: number;
  end: number;
}

const EMPTY = new Float64Array(0);

/** The events of one table. */
export class EventSet {
  readonly start: Float64Array;
  readonly dur: Float64Array;
  /** Latest end among this event and those before it in its slice: makes ends searchable. */
  readonly reach: Float64Array;
  readonly kind: Float64Array | undefined;
  /** Position of the op it belongs to (an op's parent), -1 for none. */
  readonly op: Float64Array;
  /** How many events each rectangle stands for; undefined where each is one event. */
  readonly members: Float64Array | undefined;
  /** Nanoseconds of the rectangle that events cover; undefined where each is one event. */
  readonly cover: Float64Array | undefined;
  /** Row in Python's table, of the event or of the longest it stands for. */
  readonly row: Float64Array | undefined;
  /** 1 where the selection lights the rectangle, in a window asked for with a selection. */
  readonly highlighted: Float64Array | undefined;
  /** 1 where the event is one of those that Python was given to select. */
  readonly pinned: Float64Array | undefined;
  readonly slices: LaneSlice[];

  constructor(
    readonly prefix: Prefix,
    private readonly bundle: Bundle<EventsHeader>,
  ) {
    this.start = this.#numbers("start") ?? EMPTY;
    this.dur = this.#numbers("dur") ?? EMPTY;
    this.kind = this.#numbers("kind");
    this.op = this.#numbers("op") ?? EMPTY;
    this.members = this.#numbers("members");
    this.cover = this.#numbers("cover");
    this.row = this.#numbers("row");
    this.highlighted = this.#numbers("lit");
    this.pinned = this.#numbers("kept");
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
    // What a double does not hold exactly is still drawn, to the pixel it falls on.
    return column instanceof BigInt64Array ? Float64Array.from(column, Number) : column;
  }

  number(name: string, i: number): number | bigint | undefined {
    return this.bundle.column(`${this.prefix}.${name}`)?.[i];
  }

  /** The position of a name in the bundle's names; -1 where missing. */
  code(column: string, i: number): number {
    return Number(this.number(column, i) ?? -1);
  }

  /** The name in a column of names; empty where missing. */
  name(column: string, i: number): string {
    const code = this.code(column, i);
    return code < 0 ? "" : (this.bundle.header.names[code] ?? "");
  }

  /** The names that events [first, end) have, each once. */
  names(first: number, end: number): string[] {
    const codes = this.bundle.column(`${this.prefix}.name`) ?? EMPTY;
    const all = this.bundle.header.names;
    const seen = new Uint8Array(all.length);
    for (let i = first; i < end; i++) seen[Number(codes[i])] = 1;
    return all.filter((_, code) => seen[code]);
  }

  /** Whether a column holds names. */
  named(column: string): boolean {
    return this.bundle.header.texts?.includes(`${this.prefix}.${column}`) ?? false;
  }

  /** The columns that were sent, without the table's prefix. */
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
  /** Event drawn with an outline: the one that was clicked. */
  outlined: { prefix: Prefix; event: number } | null;
}

/** An event's fields as the DataFrame has them: column to number or text, missing ones left out. */
export type Fields = Record<string, Cell | bigint>;

/** The three tables of one bundle. */
export class Events {
  readonly counts: EventsHeader["shown"];
  /** All names that its columns refer to. */
  readonly names: string[];
  /** Which selection the sets' `lit` is of, in a window asked for with one. */
  highlightKey = "";
  #children: number[][] | undefined;
  readonly #sets = new Map<Prefix, EventSet>();

  constructor(private readonly bundle: Bundle<EventsHeader>) {
    this.counts = bundle.header.shown;
    this.names = bundle.header.names;
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

  /** Made when first asked for: what is fetched ahead may never be drawn. */
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

  /** Whether some events were left out. */
  get merged(): boolean {
    return Object.values(this.counts).some(([sent, total]) => sent < total);
  }

  /** The op and its ancestors, outermost first. */
  chain(op: number): number[] {
    const chain: number[] = [];
    for (let at = op; at >= 0 && chain.length < 1000; at = this.op.op[at]) chain.unshift(at);
    return chain;
  }

  /** The ops and everything below them. */
  subtree(ops: Iterable<number>): Set<number> {
    if (!this.#children) {
      this.#children = Array.from({ length: this.op.length }, () => []);
      this.op.op.forEach((parent, child) => {
        if (parent >= 0) this.#children?.[parent].push(child);
      });
    }
    const found = new Set<number>(ops);
    for (const at of found) for (const child of this.#children[at]) found.add(child);
    return found;
  }
}
