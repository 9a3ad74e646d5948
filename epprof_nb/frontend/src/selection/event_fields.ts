// Fields of an event in groups: what, when, where, launch, memory.

import { count, duration, moment, size } from "../base/format.ts";
import type { Fields } from "../data/events.ts";
import { kindLabel } from "../data/kinds.ts";
import type { Prefix } from "../data/wire_types.ts";

export interface Field {
  column: string;
  label: string;
  value: string;
  /** Text that is copied: the number without its unit. */
  raw: string;
}

export interface Group {
  title: string;
  fields: Field[];
}

type Value = Fields[string];

/** Columns by group in display order. */
const GROUPS = {
  what: "kind op_type category source provider domain attribution count status return_value captured input_shapes output_shapes args",
  when: "dur start_ns end_ns delay duration_ns device_ns launches suspended_ns pool_start_ns pool_wait_ns",
  where:
    "device_id context_id stream_id thread_id session run_id repeat node_index op_id parent_op_id",
  launch:
    "grid block registers_per_thread static_shared_bytes dynamic_shared_bytes graph_id graph_node_id capture_op_id correlation_id",
  memory:
    "bytes bandwidth copy_kind src_kind dst_kind src_device_id dst_device_id output_bytes parameter_bytes activation_bytes in_use_bytes in_use_delta_bytes requested_bytes requested_delta_bytes arena_held_bytes arena_held_delta_bytes peak_bytes",
};
/** Labels of columns; other columns show their name without its unit. */
const LABELS: Record<string, string> = {
  op_type: "type",
  source: "recorded by",
  count: "executions",
  return_value: "result",
  input_shapes: "inputs",
  output_shapes: "outputs",
  args: "arguments",
  dur: "duration",
  delay: "queued",
  duration_ns: "host time",
  device_ns: "device time",
  launches: "launched",
  node_index: "node",
  op_id: "op id",
  parent_op_id: "parent op id",
  capture_op_id: "captured by op",
  correlation_id: "correlation id",
  bytes: "size",
  copy_kind: "direction",
  src_kind: "from",
  dst_kind: "to",
  pool_start_ns: "starting threads",
  pool_wait_ns: "waiting for threads",
  output_bytes: "outputs",
  parameter_bytes: "parameters",
  activation_bytes: "activations",
  arena_held_bytes: "held by arena",
  peak_bytes: "peak in use",
  src_device_id: "from device",
  dst_device_id: "to device",
};
const GROUPED = new Set(Object.values(GROUPS).join(" ").split(" "));
/** Columns shown elsewhere, or used by the viewer only. */
const HIDDEN = new Set(
  "name op_name operator start dur op id row highlighted pinned members cover cell line end_line".split(
    " ",
  ),
);

/** Non-empty fields by group; columns of no group come last. */
export function groups(prefix: Prefix, known: Fields, delay: number | null): Group[] {
  const fields = complete(prefix, known, delay);
  const filled = Object.entries(GROUPS).map(([title, columns]) => ({
    title,
    fields: columns.split(" ").flatMap((column) => field(column, fields[column]) ?? []),
  }));
  const rest = Object.keys(fields).filter((column) => !GROUPED.has(column) && !HIDDEN.has(column));
  const others = rest.flatMap((column) => field(column, fields[column]) ?? []);
  if (others.length) filled.push({ title: "more", fields: others });
  return filled.filter((group) => group.fields.length > 0);
}

/** Add derived fields and combine related ones. */
function complete(prefix: Prefix, known: Fields, delay: number | null): Fields {
  const fields: Fields = { ...known };
  const dur = Number(fields.end_ns) - Number(fields.start_ns);
  // A page in a notebook does not have the times of merged events.
  if (fields.start_ns !== undefined) {
    fields.dur = Math.max(dur, 0);
    if (delay !== null) fields.delay = delay;
  }
  if (prefix !== "op" || Number(fields.duration_ns) === dur) delete fields.duration_ns;
  for (const name of ["grid", "block"]) {
    const axes = ["x", "y", "z"].map((axis) => Number(fields[`${name}_${axis}`] ?? -1));
    for (const axis of ["x", "y", "z"]) delete fields[`${name}_${axis}`];
    if (axes[0] >= 0) fields[name] = axes.map((n) => count(Math.max(n, 1))).join(" × ");
  }
  const bytes = Number(fields.bytes ?? -1);
  if (bytes > 0 && Number(fields.dur) > 0) fields.bandwidth = bytes / dur;
  return fields;
}

function field(column: string, value: Value | undefined): Field[] | null {
  if (value === undefined || value === null) return null;
  const text = show(column, value);
  if (text === "") return null;
  const label = LABELS[column] ?? column.replace(/_(id|ns|bytes)$/, "").replaceAll("_", " ");
  return [{ column, label, value: text, raw: String(value) }];
}

/** Text of a value with its unit; empty for values without information. */
function show(column: string, value: Value): string {
  if (column === "start_ns" || column === "end_ns") return moment(Number(value));
  if (column === "dur" || column === "delay") return duration(Number(value));
  if (column === "status" && value === "complete") return "";
  if (column === "captured") return Number(value) ? "into a graph" : "";
  if (column === "kind") return kindLabel(String(value));
  if (typeof value === "string") return value;
  const number = Number(value);
  // Changes have a missing value of their own.
  if (number === (column.endsWith("_delta_bytes") ? -(2 ** 53) : -1)) return "";
  if (column === "bandwidth") return `${size(number * 1e9)}/s`;
  if (column.endsWith("_ns")) return number === 0 ? "" : duration(number);
  if (column.endsWith("bytes")) return size(number);
  if (column === "count") return number > 1 ? count(number) : "";
  if (column === "launches" || column === "return_value") return number ? count(number) : "";
  return /(_id|session|node_index|repeat)$/.test(column) ? String(value) : count(number);
}
