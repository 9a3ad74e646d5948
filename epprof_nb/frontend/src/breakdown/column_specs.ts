// Labels, descriptions and priorities of the columns of a breakdown.

import { count, duration, percent, rate, size } from "../base/format.ts";
import type { Cell, TableData } from "../data/model.ts";

export type Column = TableData["columns"][number];

interface Spec {
  label: string;
  title: string;
  /** Priority: columns with a higher rank are dropped first when space is short. */
  rank: number;
}

/** Columns in display order. */
const SPECS: Record<string, Spec> = {
  line: { label: "line", title: "Line of the cell", rank: 1 },
  name: { label: "name", title: "Name", rank: 0 },
  source: { label: "source", title: "The line's text", rank: 0 },
  stream: { label: "stream", title: "Stream of the device", rank: 0 },
  op_type: { label: "type", title: "Cell, line, range, or operator", rank: 7 },
  share: {
    label: "share",
    title: "Share of all device time; the solid part is self time",
    rank: 2,
  },
  device_ns: { label: "device", title: "Device time, including all ops below", rank: 3 },
  self_device_ns: {
    label: "self",
    title: "Device time of the activities it launched itself",
    rank: 5,
  },
  busy_ns: { label: "busy", title: "Time during which any activity ran", rank: 5 },
  host_ns: { label: "host", title: "Host time, including all ops below", rank: 8 },
  self_host_ns: { label: "host, self", title: "Host time outside the ops below", rank: 17 },
  count: { label: "count", title: "Number of executions", rank: 4 },
  recorded: {
    label: "recorded",
    title: "Executions recorded by ONNX Runtime; host times are of these",
    rank: 20,
  },
  nodes: { label: "nodes", title: "Number of different nodes", rank: 12 },
  kernels: { label: "kernels", title: "Kernels, including all ops below", rank: 6 },
  memcpys: { label: "copies", title: "Copies, including all ops below", rank: 13 },
  memsets: { label: "memsets", title: "Memsets, including all ops below", rank: 19 },
  bytes: { label: "bytes", title: "Bytes copied or set", rank: 11 },
  bandwidth: { label: "bandwidth", title: "Bytes per second of the copies", rank: 14 },
  mean_device_ns: { label: "device, mean", title: "Mean device time of an execution", rank: 15 },
  p95_device_ns: {
    label: "device, p95",
    title: "95th percentile of the device time of an execution",
    rank: 18,
  },
  mean_ns: { label: "mean", title: "Mean duration", rank: 9 },
  min_ns: { label: "min", title: "Shortest duration", rank: 21 },
  p50_ns: { label: "p50", title: "Median duration", rank: 16 },
  p95_ns: { label: "p95", title: "95th percentile of the duration", rank: 10 },
  max_ns: { label: "max", title: "Longest duration", rank: 20 },
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
  ops: { label: "ops", title: "Number of different ops that launched it", rank: 24 },
  device_id: { label: "device id", title: "Device", rank: 26 },
  context_id: { label: "context", title: "Context", rank: 27 },
  stream_id: { label: "stream id", title: "Stream", rank: 28 },
};
const ORDER = Object.keys(SPECS);
const TEXTS = new Set("name source stream op_type cell provider inside grid block".split(" "));
/** Columns that identify a row, by preference; the first one present takes the remaining width. */
const NAME_COLUMNS = ["name", "source", "stream", "op_type"];
const PLAIN_NUMBERS = new Set("line session node_index device_id context_id stream_id".split(" "));

const LETTER = 6.4;
const MONO_LETTER = 7.3;
const PADDING = 17;
const BAR = 76;
const LEAST_NAME = 150;
const MOST_NAME = 90;
/** Columns ranked lower are shown only if names fit whole. */
const BEFORE_NAMES = 15;

export function label(name: string, by?: string): string {
  // The duration of an op is host time, which the label must say beside device times.
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

export function nameColumn(columns: Column[]): string {
  const names = new Set(columns.map(({ name }) => name));
  return NAME_COLUMNS.find((name) => names.has(name)) ?? columns[0]?.name ?? "";
}

/** Text of a cell, with the unit of its column. */
export function formatCell(column: string, value: Cell): string {
  // Leave zeros empty: they are easier to skip.
  if (value === null || value === 0) return "";
  if (typeof value !== "number") return String(value);
  if (column === "share") return percent(value);
  if (column === "bandwidth") return rate(value);
  if (column.endsWith("_ns")) return duration(value);
  if (column.endsWith("bytes")) return size(value);
  return PLAIN_NUMBERS.has(column) ? String(value) : count(value);
}

/** Columns with any information, in display order. */
export function informativeColumns(table: TableData): Column[] {
  const main = nameColumn(table.columns);
  const informative = table.columns.filter(({ name, values }) => {
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
  return informative
    .map((column, i) => ({ column, i }))
    .sort((a, b) => lead(a.column) - lead(b.column) || a.i - b.i)
    .map(({ column }) => column);
}

interface Fit {
  columns: Column[];
  /** Number of characters of a name that fit. */
  letters: number;
}

/** Columns that fit into `width` pixels, by rank; names stay readable. */
export function fittingColumns(columns: Column[], by: string, rows: number[], width: number): Fit {
  const main = nameColumn(columns);
  const bar = barColumn(columns);
  const need = new Map(
    columns.map((column) => [
      column.name,
      columnWidth(column, by, rows, main) + (column.name === bar ? BAR : 0),
    ]),
  );
  const fullName = need.get(main) ?? 0;
  const minName = Math.min(fullName, Math.max(LEAST_NAME, width * 0.3));
  let left = width - minName;
  let namesWhole = false;
  const kept = new Set([main]);
  const byRank = columns
    .filter(({ name }) => name !== main)
    .sort((a, b) => (SPECS[a.name]?.rank ?? 99) - (SPECS[b.name]?.rank ?? 99));
  for (const { name } of byRank) {
    const more = need.get(name) ?? 0;
    if (!namesWhole && (SPECS[name]?.rank ?? 99) > BEFORE_NAMES) {
      // The remaining columns are rarely needed: whole names come first.
      left -= fullName - minName;
      namesWhole = true;
    }
    // A lower-ranked column must not take the space of one that did not fit.
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
    letters: nameLength(width - used),
  };
}

/** Number of characters of a name that fit into `width` pixels. */
export function nameLength(width: number): number {
  return Math.max(
    Math.min(Math.floor((width - PADDING) / MONO_LETTER), MOST_NAME),
    Math.floor((LEAST_NAME - PADDING) / MONO_LETTER),
  );
}

/** Column with the bars: the share of device time, or host time if there is none. */
export function barColumn(columns: Column[]): string | undefined {
  return ["share", "host_ns"].find((name) => columns.some((column) => column.name === name));
}

function columnWidth(column: Column, by: string, rows: number[], main: string): number {
  let letters = label(column.name, by).length + 2;
  for (const i of rows)
    letters = Math.max(letters, formatCell(column.name, column.values[i]).length);
  if (column.name === main) return Math.min(letters, MOST_NAME) * MONO_LETTER + PADDING;
  return Math.min(letters, 24) * LETTER + PADDING;
}
