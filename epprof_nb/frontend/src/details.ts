// What is known about one event: for the tooltip, and for the panel below the timeline.

import { h } from "./dom.ts";
import { count, duration, shorten, size } from "./format.ts";
import type { Hit } from "./hit.ts";
import { type Events, KIND_NAMES } from "./model.ts";

export interface Field {
  label: string;
  value: string;
}

const LABELS: Record<string, string> = {
  op_name: "op",
  device_ns: "device time",
  suspended_ns: "suspended",
  duration_ns: "host time",
  device_id: "device",
  context_id: "context",
  stream_id: "stream",
  thread_id: "thread",
  correlation_id: "correlation id",
  capture_op_id: "captured by op",
  run_id: "run",
  copy_kind: "direction",
  src_kind: "from memory",
  dst_kind: "to memory",
  registers_per_thread: "registers a thread",
  static_shared_bytes: "static shared memory",
  dynamic_shared_bytes: "dynamic shared memory",
  graph_id: "graph",
  graph_node_id: "graph node",
  return_value: "result",
  op_type: "type",
};
/** Shown in a way of their own, or of no use to a reader. */
const HIDDEN = new Set(["start", "dur", "op", "kind", "name", "id", "status", "end_line"]);
const NAMES = new Set([
  ..."name op_name op_type category source provider cell status args".split(" "),
  ..."copy_kind src_kind dst_kind attribution domain".split(" "),
]);
const AXES = ["x", "y", "z"];

/** Every field of an event that says something, in the order of the table's columns. */
export function fields(at: Hit): Field[] {
  const { set, event } = at;
  const found: Field[] = [
    { label: "duration", value: duration(set.dur[event]) },
    { label: "start", value: duration(set.start[event]) },
  ];
  const kind = set.kind?.[event] ?? 0;
  if (set.prefix === "act") found.unshift({ label: "kind", value: KIND_NAMES[kind as 0] });
  for (const column of set.columns()) {
    if (HIDDEN.has(column)) continue;
    const axis = /^(grid|block)_([xyz])$/.exec(column);
    if (axis) {
      if (axis[2] !== "x" || Number(set.number(column, event)) < 0) continue;
      const shape = AXES.map((a) => count(set.number(`${axis[1]}_${a}`, event) ?? 1));
      found.push({ label: axis[1], value: shape.join(" × ") });
      continue;
    }
    const value = NAMES.has(column)
      ? set.name(column, event)
      : number(column, set.number(column, event));
    if (value === "" || (column === "count" && value === "1")) continue;
    found.push({ label: LABELS[column] ?? column.replaceAll("_", " "), value });
  }
  return found;
}

function number(column: string, value: number | bigint | undefined): string {
  if (value === undefined || value === -1 || value === -1n) return "";
  if (column.endsWith("_ns")) return Number(value) === 0 ? "" : duration(Number(value));
  if (column.endsWith("bytes")) return size(Number(value));
  if (column === "captured") return Number(value) ? "into a graph" : "";
  if (column === "launches") return Number(value) ? count(value) : "";
  return /(_id|line)$/.test(column) ? value.toString() : count(value);
}

/** An event's name, or what stands for it. */
export function title(at: Hit): string {
  return at.set.name("name", at.event) || "(no name)";
}

function list(items: Field[]): HTMLElement {
  return h(
    "dl",
    { class: "ep-fields" },
    ...items.map(({ label, value }) =>
      h("div", {}, h("dt", {}, label), h("dd", { title: value }, value)),
    ),
  );
}

export function tooltip(at: Hit): HTMLElement[] {
  return [h("div", { class: "ep-tip-title" }, shorten(title(at), 240)), list(fields(at))];
}

/** The panel's content: the op chain as links, the whole name, every field. */
export function panel(at: Hit, events: Events, choose: (op: number) => void): HTMLElement[] {
  const own = at.set.prefix === "op";
  const chain = events.chain(own ? at.event : at.set.op[at.event]);
  const links = chain.map((op) => {
    const name = events.op.name("name", op) || "(no name)";
    const current = own && op === at.event;
    const button = h(
      "button",
      { class: "ep-link", type: "button", title: name, "aria-current": current },
      shorten(name, 44),
    );
    button.addEventListener("click", () => choose(op));
    return button;
  });
  const path = h(
    "nav",
    { class: "ep-chain", "aria-label": "Ops around it, outermost first" },
    ...links,
  );
  if (!own) path.append(h("span", { class: "ep-leaf", title: title(at) }, shorten(title(at), 90)));
  if (!own && chain.length === 0) path.append(h("span", { class: "ep-faint" }, "belongs to no op"));
  return [path, list(fields(at))];
}
