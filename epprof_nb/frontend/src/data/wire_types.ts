// Wire types of the viewer: the header of a profile, and what its queries return.

import type { RangeBreakdown } from "./by_range.ts";
import type { HolderHeader } from "./memory_holders.ts";

export interface Lane {
  kind: "ops" | "api" | "stream";
  label: string;
  /** Label of its device if there are several, else empty. */
  device_label: string;
  title: string;
  rows: number;
  device: number;
  thread: number;
}

export type Cell = string | number | boolean | null;
export interface TableData {
  columns: { name: string; values: Cell[] }[];
  /** Number of rows of the whole table; fewer may be sent. */
  rows: number;
  /**
   * Number of rows that match the requested pattern, if Python filtered; and why the pattern is
   * used as plain text only.
   */
  found?: number;
  note?: string;
  /** Events that each row counts, where these follow from Python stacks. */
  selections?: (Where | null)[];
}

/** Events of a table whose columns have some values; see `SelectionQuery`. */
export interface Where {
  prefix: Prefix;
  equals: Record<string, Cell | Cell[]>;
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
  /** Names of the ops of a function in a file. */
  ops?: string[];
  /** Python stacks of a line that no statement marks. */
  stacks?: number[];
}

/** Range of characters to colour: a keyword, a string or a comment. */
export type SyntaxSpan = [start: number, end: number, kind: "k" | "s" | "c"];

/** Source of a cell, or of a function in a file. */
export interface SourceCell {
  cell: string;
  file: boolean;
  /** Number of the first line. */
  first: number;
  lines: string[];
  spans: SyntaxSpan[][];
  left_out: number;
  /** Device time of the whole profile. */
  device_ns: number;
  totals: LineTotals[];
}

/** How to call the repeats: what one is, and the number of the first one. */
export interface RepeatNames {
  unit: "repeat" | "step";
  first: number;
}

/** Statistics of the repeats, and wall times (ns) of the strip chart. */
export interface Repeats {
  text: string;
  count: number;
  mean: number;
  points: number[];
  names: RepeatNames;
}

export interface Finding {
  text: string;
  /** Remedy and gain. */
  advice: string;
  start: number;
  end: number;
}

export type Prefix = "op" | "api" | "act";

export interface EventsHeader {
  /** Names of the kinds of activity by code. */
  kinds: string[];
  names: string[];
  /** Short names of kernels, by index into `names`. */
  short_names?: Record<number, string>;
  /** Columns whose values are indices into `names`. */
  texts?: string[];
  slices: Record<Prefix, [lane: number, row: number, first: number, end: number][]>;
  shown: Record<string, [sent: number, total: number]>;
}

export type DeviceLabels = Readonly<Record<number, string>>;

/** Counter of a profile: its device and what it counts. */
export interface Counter {
  what: "busy" | "launches" | "copied" | "memory" | "pools";
  device: number;
  name: string;
  /** Of memory: names of the parts from the bottom up, and time and bytes of the peak. */
  parts?: string[];
  peak?: [at: number, bytes: number];
  /** Starts and ends of intervals with missing records, ascending; only for busy time. */
  unknown?: [number, number][];
}

/** Tree as sent by Python: one value per node, parents before their children. */
export interface TreeData {
  names: string[];
  /** Short names of kernels, by index into `names`. */
  short_names?: Record<number, string>;
  parent: number[];
  level: number[];
  name: number[];
  count: number[];
  device_ns: number[];
  self_device_ns?: number[];
  host_ns?: number[];
  kernels: number[];
  bytes?: number[];
  /** Launches and waits: of a tree of stacks, which has no host times. */
  launches?: number[];
  waits?: number[];
  wait_ns?: number[];
  /** Cell or file of each frame, by index into `names`, and its line; -1 for none. */
  cell?: number[];
  line?: number[];
  /** Text of the line, likewise. */
  text?: number[];
  /** How often a frame follows itself at most, if any does. */
  recursion?: number[];
  /** Python stacks with work (null for work without a stack), and the node of each. */
  stack_id?: (number | null)[];
  stack_node?: number[];
  /** Hue of the operator of each node, -1 for none; only without device work. */
  hue?: number[];
  /** Number of paths a node stands for; 0 for a single path. */
  others: number[];
  paths: number;
  /** Sums of the old side, in a comparison. */
  old_device_ns?: number[];
  old_launches?: number[];
  old_waits?: number[];
  old_wait_ns?: number[];
  old_kernels?: number[];
  old_count?: number[];
  /** Stacks that only the old side has, and their device time. */
  removed?: number;
  removed_ns?: number;
}

/** Name with a hue. */
export interface Hue {
  name: string;
  /** Number of the hue; see `hue` in render/event_colours.ts. */
  number: number;
}

/** Number in the headline that links to the events it counts. */
export interface Count {
  what: "kernel" | "memcpy" | "memset" | "gaps" | "stray";
  text: string;
}

/** Reference to an event, drawn or not. */
export interface EventRef {
  prefix: Prefix;
  /** Row in Python's table; in a static page the index among the embedded events. */
  row: number;
  name: string;
  start: number;
  dur: number;
  /** Lane and row within it; level -1 is the lane's foot, lane -1 means not drawn. */
  lane: number;
  level: number;
}

/** Number of events of a query, their time range, and the requested event. */
export interface SeekResult {
  count: number;
  start: number | null;
  end: number | null;
  number: number | null;
  event: EventRef | null;
  /** Whether the count includes rectangles that stand for several events. */
  about?: boolean;
  /** Number of rectangles to move through, if they are fewer than the events. */
  drawn?: number;
}

export interface ProfileHeader extends EventsHeader, HolderHeader {
  range: [number, number];
  headline: {
    wall: string;
    busy: { label: string; name: string; share: number; text: string }[];
    counts: Count[];
    quality: string;
    /** The profiler's own time, and its explanation. */
    overhead: { text: string; note: string };
    stray: Count | null;
    incomplete: boolean;
    empty: string | null;
    error: string | null;
    repeats: Repeats | null;
    /** Lines on the memory of GPUs, if it was recorded. */
    memory: string[];
    device_word: string;
    notes: string[];
  };
  /** Kinds of activity that the profile has. */
  kinds_present: string[];
  /** Operators with the most time. */
  operators: Hue[];
  /** The word for them: operator, module, function or op. */
  operator_word: string;
  /** Device, driver and versions the profile was made on, and its date. */
  made_on: string;
  findings: Finding[];
  /** Idle gaps that the headline counts; if there are very many, the longest. */
  gaps: [start: number, end: number][];
  /** Time range of each repeat of the code, in order. */
  repeats: [start: number, end: number][];
  repeat_names: RepeatNames;
  /** Rows that were passed to Python to select, and how many of them are embedded. */
  given?: SeekResult & { sent: number };
  lanes: Lane[];
  /** Short label of each device by id, such as "GPU 0" or "host device". */
  devices: DeviceLabels;
  counters: Counter[];
  /** Available breakdowns. */
  breakdowns: string[];
  /** Whether there are Python stacks. */
  has_stacks: boolean;
  tables: Record<string, TableData>;
  trees: Record<string, TreeData>;
  source: SourceCell[];
  /** Exact breakdown of the whole time range. */
  whole?: RangeBreakdown;
  /** Kinds, names and devices of the sums by time bin; null if the sums would be too many. */
  bins?: { kinds: string[]; names: string[]; devices: number[] } | null;
  /** Whether the page has every event. */
  detail?: boolean;
  /** Numbers of events by the columns of selections, and the tables that have them. */
  groups?: Pick<EventsHeader, "kinds" | "names" | "short_names" | "texts"> & { counted: Prefix[] };
}
