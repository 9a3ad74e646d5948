// What a breakdown's columns are called, what they mean, and which of them fit.

import { count, duration, percent, rate, size } from "../base/format.ts";
import type { Cell, TableData } from "../data/model.ts";

export type Column = TableData["columns"][number];

interface Spec {
  label: string;
  title: string;
  /** How soon a reader looks for it: what ranks low gives way first where room is short. */
  rank: number;
}

/** In the order in which they are shown. */
const SPECS: Record<string, Spec> = {
  line: { label: "line", title: "Line of the cell", rank: 1 },
  name: { label: "name", title: "Name", rank: 0 },
  source: { label: "source", title: "The line's text", rank: 0 },
  stream: { label: "stream", title: "Stream of the device", rank: 0 },
  op_type: { label: "type", title: "Cell, line, range, or operator", rank: 7 },
  share: { label: "share", title: "Share of all device time; the solid part is its own", rank: 2 },
  device_ns: { label: "device", title: "Device time, of all below it included", rank: 3 },
  self_device_ns: { label: "self", title: "Device time that it launched itself", rank: 5 },
  busy_ns: { label: "busy", title: "Time during which something ran", rank: 5 },
  host_ns: { label: "host", title: "Host time, of all below it included", rank: 8 },
  self_host_ns: { label: "host, self", title: "Host time outside of the ops below it", rank: 17 },
  count: { label: "count", title: "How often", rank: 4 },
  nodes: { label: "nodes", title: "Different nodes", rank: 12 },
  kernels: { label: "kernels", title: "Kernels, of all below it included", rank: 6 },
  memcpys: { label: "copies", title: "Copies, of all below it included", rank: 13 },
  memsets: { label: "sets", title: "Sets, of all below it included", rank: 19 },
  bytes: { label: "bytes", title: "Bytes copied and set", rank: 11 },
  bandwidth: { label: "bandwidth", title: "Bytes a second of the copies", rank: 14 },
  mean_device_ns: { label: "device, mean", title: "Device time of an execution", rank: 15 },
  p95_device_ns: {
    label: "device, p95",
    title: "Device time that 95 % of executions do not exceed",
    rank: 18,
  },
  mean_ns: { label: "mean", title: "Mean duration of one", rank: 9 },
  min_ns: { label: "min", title: "Shortest", rank: 21 },
  p50_ns: { label: "p50", title: "Median duration", rank: 16 },
  p95_ns: { label: "p95", title: "Duration that 95 % do not exceed", rank: 10 },
  max_ns: { label: "max", title: "Longest", rank: 20 },
  launch_delay_ns: {
    label: "launch delay",
    title: "Mean time from a kernel's API call to its start",
    rank: 12,
  },
  provider: { label: "provider", title: "Execution provider that ran it", rank: 11 },
  inside: { label: "inside", title: "Node whose subgraph it is in", rank: 22 },
  session: { label: "session", title: "ONNX Runtime session", rank: 23 },
  node_index: { label: "index", title: "Index of the node in its graph", rank: 25 },
  cell: { label: "cell", title: "Cell", rank: 24 },
  grid: { label: "grid", title: "Grid of the most frequent launch, blocks", rank: 22 },
  block: { label: "block", title: "Block of the most frequent launch, threads", rank: 23 },
  ops: { label: "ops", title: "Different ops that launched it", rank: 24 },
  device_id: { label: "device id", title: "Device", rank: 26 },
  context_id: { label: "context", title: "Context", rank: 27 },
  stream_id: { label: "stream id", title: "Stream", rank: 28 },
};
const ORDER = Object.keys(SPECS);
const TEXTS = new Set("name source stream op_type cell provider inside grid block".split(" "));
/** The columns that tell what a row is about; the first of them takes the room that is left. */
const SUBJECTS = ["name", "source", "stream", "op_type"];
const PLAIN_NUMBERS = new Set("line session node_index device_id context_id stream_id".split(" "));

const LETTER = 6.4;
const MONO_LETTER = 7.3;
const PADDING = 17;
const BAR = 76;
const LEAST_NAME = 150;
const MOST_NAME = 90;
/** Columns that rank lower are shown only where names are whole. */
const BEFORE_NAMES = 15;

export function label(name: string, by?: string): string {
  // An op's own duration is time on the host: beside device times that must be said.
  if (by && !["kernel", "stream"].includes(by) && /^(mean|p50|p95)_ns$/.test(name)) {
    return `host, ${SPECS[name].label}`;
  }
  return SPECS[name]?.label ?? name.replaceAll("_", " ");
}

export function title(name: string): string {
  return SPECS[name]?.title ?? name;
}

export function isText(name: string): boolean {
  return TEXTS.has(name);
}

export function subject(columns: Column[]): string {
  const names = new Set(columns.map(({ name }) => name));
  return SUBJECTS.find((name) => names.has(name)) ?? columns[0]?.name ?? "";
}

/** A cell's text: a number with its unit, by its column's name. */
export function show(column: string, value: Cell): string {
  // An empty cell is easier to pass over than a zero.
  if (value === null || value === 0) return "";
  if (typeof value !== "number") return String(value);
  if (column === "share") return percent(value);
  if (column === "bandwidth") return rate(value);
  if (column.endsWith("_ns")) return duration(value);
  if (column.endsWith("bytes")) return size(value);
  return PLAIN_NUMBERS.has(column) ? String(value) : count(value);
}

/** The columns that say anything, in the order in which they are shown. */
export function telling(table: TableData): Column[] {
  const main = subject(table.columns);
  const told = table.columns.filter(({ name, values }) => {
    if (name === main) return true;
    if (name === "cell") return new Set(values.filter((v) => v !== null)).size > 1;
    return values.some((value) => value !== null && value !== 0 && value !== "");
  });
  const place = ({ name }: Column): number => {
    const at = ORDER.indexOf(name);
    return at < 0 ? ORDER.length : at;
  };
  const lead = (column: Column): number =>
    column.name === "line" ? -2 : column.name === main ? -1 : place(column);
  return told
    .map((column, i) => ({ column, i }))
    .sort((a, b) => lead(a.column) - lead(b.column) || a.i - b.i)
    .map(({ column }) => column);
}

export interface Fit {
  columns: Column[];
  /** Characters of a name that have room. */
  letters: number;
}

/** The columns that have room in `width` pixels, the most looked for first; names stay readable. */
export function fitting(columns: Column[], by: string, rows: number[], width: number): Fit {
  const main = subject(columns);
  const bar = barred(columns);
  const need = new Map(
    columns.map((column) => [
      column.name,
      room(column, by, rows, main) + (column.name === bar ? BAR : 0),
    ]),
  );
  const wanted = need.get(main) ?? 0;
  const least = Math.min(wanted, Math.max(LEAST_NAME, width * 0.3));
  let left = width - least;
  let whole = false;
  const kept = new Set([main]);
  const byRank = columns
    .filter(({ name }) => name !== main)
    .sort((a, b) => (SPECS[a.name]?.rank ?? 99) - (SPECS[b.name]?.rank ?? 99));
  for (const { name } of byRank) {
    const more = need.get(name) ?? 0;
    if (!whole && (SPECS[name]?.rank ?? 99) > BEFORE_NAMES) {
      // What is left is seldom looked for: whole names come first.
      left -= wanted - least;
      whole = true;
    }
    // Nothing less important takes the place of what had no room.
    if (more > left) break;
    left -= more;
    kept.add(name);
  }
  const used = [...kept].reduce(
    (sum, name) => sum + (name === main ? 0 : (need.get(name) ?? 0)),
    0,
  );
  return {
    columns: columns.filter(({ name }) => kept.has(name)),
    letters: lettersIn(width - used),
  };
}

/** Characters of a name that have room in `width` pixels. */
export function lettersIn(width: number): number {
  return Math.max(
    Math.min(Math.floor((width - PADDING) / MONO_LETTER), MOST_NAME),
    Math.floor((LEAST_NAME - PADDING) / MONO_LETTER),
  );
}

/** The column that carries the bars: the share of device time, or host time where there is none. */
export function barred(columns: Column[]): string | undefined {
  return ["share", "host_ns"].find((name) => columns.some((column) => column.name === name));
}

function room(column: Column, by: string, rows: number[], main: string): number {
  let letters = label(column.name, by).length + 2;
  for (const i of rows) letters = Math.max(letters, show(column.name, column.values[i]).length);
  if (column.name === main) return Math.min(letters, MOST_NAME) * MONO_LETTER + PADDING;
  return Math.min(letters, 24) * LETTER + PADDING;
}
