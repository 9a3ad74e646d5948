// From a row of a breakdown to its events in the timeline.

import type { Cell, EventSet, Events } from "./model.ts";

/** What can be lit by a rule; see chosen.ts. */
export interface Lights {
  ops(wanted: (op: number) => boolean): void;
  activities(wanted: (activity: number) => boolean): void;
}

type Row = Record<string, Cell>;

/** Lights what a row of a breakdown counts. */
export function lightRow(lights: Lights, events: Events, by: string, row: Row): void {
  const { op, act } = events;
  if (by === "kernel") {
    lights.activities((i) => act.kind?.[i] === 1 && same(act, i, row, ["name"]));
  } else if (by === "stream") {
    const ids = ["device_id", "context_id", "stream_id"];
    lights.activities((i) => same(act, i, row, ids) && isWork(act, i));
  } else if (isRest(row)) {
    lights.activities((i) => act.op[i] < 0 && isWork(act, i));
  } else lights.ops((i) => same(op, i, row, KEYS[by] ?? KEYS.op));
}

/** The columns by which a breakdown tells its rows apart. */
const KEYS: Record<string, string[]> = {
  op: ["name", "op_type", "cell", "line"],
  line: ["cell", "line"],
  node: ["name", "op_type", "session", "node_index"],
  op_type: ["op_type", "provider"],
};

/** The last row of a breakdown by ops: work that belongs to none of them. */
function isRest(row: Row): boolean {
  return (
    row.count === 0 &&
    ["(no op)", "(no line)", "(no node)"].includes(String(row.name ?? row.source ?? row.op_type))
  );
}

function isWork(set: EventSet, i: number): boolean {
  const kind = set.kind?.[i] ?? 0;
  return kind >= 1 && kind <= 3;
}

function same(set: EventSet, i: number, row: Row, keys: string[]): boolean {
  return keys.every((key) => {
    const wanted = row[key] ?? null;
    if (typeof wanted === "string") return set.name(key, i) === wanted;
    const value = Number(set.number(key, i) ?? -1);
    return wanted === null ? value < 0 : value === wanted;
  });
}
