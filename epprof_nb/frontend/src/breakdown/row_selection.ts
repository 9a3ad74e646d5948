// Queries for the events behind a row of a breakdown.

import { BUSY_KINDS } from "../data/kinds.ts";
import type { SelectionQuery } from "../data/selection_queries.ts";
import type { Cell } from "../data/wire_types.ts";
import type { TreeNode } from "./icicle_tree.ts";

const NO_OP = "(no op)";
/** Op types of modules and fused kernels, by the level of a tree or the type of a row. */
const MODULE_TYPES: Record<string, string[]> = {
  module: ["module", "compiled", "recompute", "backward"],
  forward: ["module", "compiled"],
  backward: ["recompute", "backward"],
  fused: ["fused", "fused_backward"],
};

type Row = Record<string, Cell>;

/** Query for the events that a row counts; null for rows outside of modules. */
export function queryForRow(by: string, row: Row): SelectionQuery | null {
  const equals = (columns: string[]): Row =>
    Object.fromEntries(columns.map((column) => [column, row[column] ?? null]));
  if (by === "kernel") {
    return { what: "where", prefix: "act", equals: { ...equals(["name"]), kind: "kernel" } };
  }
  if (by === "stream") {
    const ids = equals(["device_id", "context_id", "stream_id"]);
    return { what: "where", prefix: "act", equals: { ...ids, kind: BUSY_KINDS } };
  }
  if (by === "function") return null; // samples are not events
  if (by === "module") return row.type === null ? null : opsOf(String(row.path), String(row.type));
  if (isUnattributed(row)) {
    return { what: "where", prefix: "act", equals: { op_id: null, kind: BUSY_KINDS } };
  }
  return { what: "where", prefix: "op", equals: equals(KEYS[by] ?? KEYS.op) };
}

/** Query for the events of a name in the tree: ops or activities. */
export function queryForNode({ name, level, stacks, launched }: TreeNode): SelectionQuery {
  if (stacks) {
    const leaf = BUSY_KINDS.some((kind) => kind === level) ? { name, kind: level } : {};
    const prefix = launched ? "act" : "api";
    return { what: "where", prefix, equals: { stack_id: stacks, ...leaf } };
  }
  if (BUSY_KINDS.some((kind) => kind === level)) {
    return { what: "where", prefix: "act", equals: { name, kind: level } };
  }
  if (name === NO_OP) {
    return { what: "where", prefix: "act", equals: { op_id: null, kind: BUSY_KINDS } };
  }
  return level in MODULE_TYPES
    ? opsOf(name, level)
    : { what: "where", prefix: "op", equals: { name } };
}

/** Query for the framework ops of a name and a type. */
function opsOf(name: string, type: string): SelectionQuery {
  return {
    what: "where",
    prefix: "op",
    equals: { name, op_type: MODULE_TYPES[type] ?? type, category: "framework" },
  };
}

/** Columns that identify a row, by breakdown. */
const KEYS: Record<string, string[]> = {
  op: ["name", "op_type", "cell", "line"],
  line: ["cell", "line"],
  node: ["name", "op_type", "session", "node_index"],
  op_type: ["op_type", "provider"],
};

/** Whether a row holds the activities without an op: the last row of a breakdown by ops. */
function isUnattributed(row: Row): boolean {
  return (
    row.count === 0 &&
    [NO_OP, "(no line)", "(no node)"].includes(String(row.name ?? row.source ?? row.op_type))
  );
}
