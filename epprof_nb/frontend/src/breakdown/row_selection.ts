// From a row of a breakdown to its events in the timeline.

import type { Cell } from "../data/model.ts";
import type { SelectionQuery } from "../data/queries.ts";

const NO_OP = "(no op)";

type Row = Record<string, Cell>;

const WORK = ["kernel", "memcpy", "memset"];

/** The events that a row of a breakdown counts. */
export function wantedOf(by: string, row: Row): SelectionQuery {
  const equals = (columns: string[]): Row =>
    Object.fromEntries(columns.map((column) => [column, row[column] ?? null]));
  if (by === "kernel") {
    return { what: "where", prefix: "act", equals: { ...equals(["name"]), kind: "kernel" } };
  }
  if (by === "stream") {
    const ids = equals(["device_id", "context_id", "stream_id"]);
    return { what: "where", prefix: "act", equals: { ...ids, kind: WORK } };
  }
  if (isRest(row)) {
    return { what: "where", prefix: "act", equals: { op_id: null, kind: WORK } };
  }
  return { what: "where", prefix: "op", equals: equals(KEYS[by] ?? KEYS.op) };
}

/** The events of a name in the tree: of ops, or of what the device did. */
export function wantedOfNode(name: string, level: string): SelectionQuery {
  if (WORK.includes(level)) {
    return { what: "where", prefix: "act", equals: { name, kind: level } };
  }
  if (name === NO_OP) {
    return { what: "where", prefix: "act", equals: { op_id: null, kind: WORK } };
  }
  return { what: "where", prefix: "op", equals: { name } };
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
    [NO_OP, "(no line)", "(no node)"].includes(String(row.name ?? row.source ?? row.op_type))
  );
}
