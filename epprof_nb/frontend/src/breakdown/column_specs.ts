// Labels, descriptions and priorities of the columns of a breakdown.

import { count, duration, percent, rate, size } from "../base/format.ts";
import type { Cell, TableData } from "../data/wire_types.ts";

export type Column = TableData["columns"][number];

/** Rank is a priority: columns with a higher one are dropped first when space is short. */
type Spec = [label: string, title: string, rank: number];

/** Columns in display order. */
const SPECS: Record<string, Spec> = {
  line: ["line", "Line of the cell", 1],
  name: ["name", "Name", 0],
  short_name: ["name", "Short name; the full name is in the tooltip", 0],
  function: ["function", "Function", 0],
  source: ["source", "The line's text", 0],
  path: ["module", "Path of the module in its model", 0],
  type: ["type", "Module, or other work of the framework", 25],
  class: ["class", "Class of the module", 10],
  calls: ["calls", "Number of calls", 4],
  stream: ["stream", "Stream of the device", 0],
  op_type: ["type", "Cell, line, range, or operator", 7],
  provider: ["provider", "Execution provider that ran it", 7],
  share: ["share", "Share of all device time; the solid part is self time", 2],
  device_ns: ["device", "Device time, including all ops below", 3],
  self_device_ns: ["self", "Device time of the activities it launched itself", 5],
  busy_ns: ["busy", "Time during which any activity ran", 5],
  forward_ns: ["forward", "Device time of the forward pass", 3],
  backward_ns: ["backward", "Device time of the backward pass", 3],
  other_ns: ["other", "Device time outside both passes", 6],
  host_ns: ["host", "Host time, including all ops below", 8],
  forward_host_ns: ["host, forward", "Host time of the calls", 8],
  backward_host_ns: ["host, backward", "Host time of the backward pass", 8],
  other_host_ns: ["host, other", "Host time outside both passes: optimizers and loaders", 8],
  sampled_ns: ["host, sampled", "Host time between API calls, by samples, including callees", 7],
  self_sampled_ns: ["self", "Host time of the function itself, by samples", 5],
  self_share: ["share", "Share of the sampled host time", 6],
  samples: ["samples", "Number of samples", 9],
  file: ["file", "File or cell", 2],
  self_host_ns: ["host, self", "Host time outside the ops below", 17],
  count: ["count", "Number of executions", 4],
  recorded: ["recorded", "Executions that ONNX Runtime recorded; only these have host times", 20],
  nodes: ["nodes", "Number of different nodes", 12],
  kernels: ["kernels", "Kernels, including all ops below", 6],
  memcpys: ["copies", "Copies, including all ops below", 13],
  memsets: ["memsets", "Memsets, including all ops below", 19],
  bytes: ["bytes", "Bytes copied or set", 11],
  bandwidth: ["bandwidth", "Bytes per second of the copies", 14],
  mean_device_ns: ["device, mean", "Mean device time of an execution", 15],
  p95_device_ns: ["device, p95", "95th percentile of the device time of an execution", 18],
  mean_host_ns: ["host, mean", "Mean host time of an execution", 9],
  min_device_ns: ["device, min", "Shortest device time", 21],
  p50_host_ns: ["host, p50", "Median host time of an execution", 16],
  p95_host_ns: ["host, p95", "95th percentile of the host time of an execution", 10],
  max_device_ns: ["device, max", "Longest device time", 20],
  launch_delay_ns: ["launch delay", "Mean time from a kernel's API call to its start", 12],
  inside: ["inside", "Node whose subgraph it is in", 22],
  session: ["session", "ONNX Runtime session", 23],
  node_index: ["index", "Index of the node in its graph", 25],
  fell_back: ["fell back", "Ran on the CPU in a session with an accelerator", 15],
  fallback_copy_ns: ["fallback copies, time", "Device time of the copies for its fallback", 16],
  fallback_copies: ["fallback copies", "Copies that ONNX Runtime inserted for its fallback", 20],
  fallback_bytes: ["fallback bytes", "Bytes of the fallback copies", 21],
  in_use_bytes: ["memory in use", "Most memory in use at the end of an execution", 24],
  output_bytes: ["outputs", "Size of the outputs of all executions", 25],
  activation_bytes: ["activations", "Size of the inputs of all executions, without weights", 26],
  parameter_bytes: ["parameters", "Size of the weights read by all executions", 27],
  arena_held_delta_bytes: ["arena growth", "Growth of the allocator during the executions", 28],
  pool_wait_ns: ["waits", "Time spent waiting for threads of the session's pool", 16],
  pool_start_ns: ["starts", "Time spent starting threads of the session's pool", 19],
  cell: ["cell", "Cell or file", 2],
  grid: ["grid", "Grid of the most frequent launch, blocks", 22],
  block: ["block", "Block of the most frequent launch, threads", 23],
  ops: ["ops", "Number of different ops that launched it", 24],
  device_id: ["device id", "Device", 26],
  context_id: ["context", "Context", 27],
  stream_id: ["stream id", "Stream", 28],
};
/** Breakdowns with device times only, and the priorities of their columns where they differ. */
const DEVICE_ONLY = new Set(["kernel", "stream"]);
const DEVICE_RANKS: Record<string, number> = { mean_device_ns: 9, p95_device_ns: 10 };
const ORDER = Object.keys(SPECS);
const TEXTS = new Set(
  (
    "name short_name source path type class stream op_type cell provider inside grid block " +
    "fell_back function file"
  ).split(" "),
);
/** Columns that identify a row, by preference; the first one present takes the remaining width. */
const NAME_COLUMNS = ["short_name", "name", "source", "path", "stream", "op_type"];
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
  const text = SPECS[name]?.[0] ?? name.replaceAll("_", " ");
  // Kernels and streams have only device times.
  return by && DEVICE_ONLY.has(by) ? text.replace("device, ", "") : text;
}

function rank(name: string, by: string): number {
  const special = DEVICE_ONLY.has(by) ? DEVICE_RANKS[name] : undefined;
  return special ?? SPECS[name]?.[2] ?? 99;
}

export function title(name: string): string {
  return SPECS[name]?.[1] ?? name;
}

export function isText(name: string): boolean {
  return TEXTS.has(name);
}

export function nameColumn(columns: Column[]): string {
  const names = new Set(columns.map(({ name }) => name));
  if (names.has("samples")) return "function"; // its source is only one of its lines
  return NAME_COLUMNS.find((name) => names.has(name)) ?? columns[0]?.name ?? "";
}

/** Text of a cell, with the unit of its column. */
export function formatCell(column: string, value: Cell): string {
  // Leave zeros empty: they are easier to skip.
  if (value === null || value === 0) return "";
  if (column === "cell" || column === "file") return String(value).replace(/.*[\\/]/, "");
  if (typeof value !== "number") return String(value);
  if (column === "share" || column === "self_share") return percent(value);
  if (column === "bandwidth") return rate(value);
  if (column.endsWith("_ns")) return duration(value);
  if (column.endsWith("bytes")) return size(value);
  return PLAIN_NUMBERS.has(column) ? String(value) : count(value);
}

/** Columns that contain information, in display order. */
export function informativeColumns(table: TableData): Column[] {
  const main = nameColumn(table.columns);
  const informative = table.columns.filter(({ name, values }) => {
    if (name === main) return true;
    if (name === "name" && main === "short_name") return false; // it is the tooltip
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
    .sort((a, b) => rank(a.name, by) - rank(b.name, by));
  for (const { name } of byRank) {
    const more = need.get(name) ?? 0;
    if (!namesWhole && rank(name, by) > BEFORE_NAMES) {
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

/** Column with the bars: the share of device time, or host time, or else its share by samples. */
export function barColumn(columns: Column[]): string | undefined {
  return ["share", "host_ns", "self_share"].find((name) =>
    columns.some((column) => column.name === name),
  );
}

function columnWidth(column: Column, by: string, rows: number[], main: string): number {
  let letters = label(column.name, by).length + 2;
  for (const i of rows)
    letters = Math.max(letters, formatCell(column.name, column.values[i]).length);
  if (column.name === main) return Math.min(letters, MOST_NAME) * MONO_LETTER + PADDING;
  return Math.min(letters, 24) * LETTER + PADDING;
}
