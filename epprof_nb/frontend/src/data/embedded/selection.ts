// Which of the drawn events a selection lights: an op's subtree and what it launched, a kernel with
// its launch and its ops, whatever matches a search.

import type { Cell, EventSet, Events, Lit, Prefix, Ref } from "../model.ts";
import { hitOf, type Wanted } from "../queries.ts";
import { matches } from "./pattern.ts";

export type Rows = Partial<Record<Prefix, number[]>>;

/** The drawn events that a selection asks for, by table; without what belongs to them. */
export function found(events: Events, wanted: Wanted): Rows {
  if (wanted.what === "event") {
    const at = hitOf(events, wanted);
    return at ? { [wanted.prefix]: [at.event] } : {};
  }
  if (wanted.what === "where") {
    const set = events[wanted.prefix];
    return { [wanted.prefix]: all(set, equalTo(set, wanted.equals)) };
  }
  const rows: Rows = {};
  const hits = wanted.what === "search" ? matches(events.names, wanted.pattern) : null;
  for (const set of events.sets()) {
    const marked = hits ? null : set.kept;
    rows[set.prefix] = all(set, (i) => (hits ? hits[set.code("name", i)] : marked?.[i]) === 1);
  }
  return rows;
}

/** What a selection lights among the drawn events. */
export function lightOf(events: Events, wanted: Wanted): Omit<Lit, "chosen"> {
  // What Python lit in this window is exact, whatever of it is drawn.
  if (events.litBy === JSON.stringify(wanted)) {
    const lit = marks(events);
    for (const set of events.sets()) if (set.lit) lit[set.prefix] = Uint8Array.from(set.lit);
    return lit;
  }
  const rows = found(events, wanted);
  return light(events, rows, wanted.what !== "search", wanted.what === "event");
}

/** Where the outline of the chosen event goes; null where it is not drawn. */
export function chosenOf(events: Events, at: Ref | null): Lit["chosen"] {
  const hit = at && hitOf(events, at);
  return hit && { prefix: hit.set.prefix, event: hit.event };
}

export function nothing(events: Events): Omit<Lit, "chosen"> {
  return marks(events);
}

function marks(events: Events): Omit<Lit, "chosen"> {
  return {
    op: new Uint8Array(events.op.length),
    api: new Uint8Array(events.api.length),
    act: new Uint8Array(events.act.length),
  };
}

function all(set: EventSet, wanted: (i: number) => boolean): number[] {
  const rows: number[] = [];
  for (let i = 0; i < set.length; i++) if (wanted(i)) rows.push(i);
  return rows;
}

/** Lights rows; if `related`, ops around them and what ran under ops; if `launches`, launches. */
function light(
  events: Events,
  rows: Rows,
  related: boolean,
  launches: boolean,
): Omit<Lit, "chosen"> {
  const lit = marks(events);
  for (const set of events.sets()) for (const i of rows[set.prefix] ?? []) lit[set.prefix][i] = 1;
  if (related && rows.op?.length) {
    const tree = events.subtree(rows.op);
    for (const op of tree) lit.op[op] = 1;
    for (const set of [events.api, events.act]) {
      for (let i = 0; i < set.length; i++) if (tree.has(set.op[i])) lit[set.prefix][i] = 1;
    }
  }
  for (const set of [events.api, events.act]) {
    const mine = rows[set.prefix] ?? [];
    for (const i of related ? mine : []) {
      for (let op = set.op[i]; op >= 0 && !lit.op[op]; op = events.op.op[op]) lit.op[op] = 1;
    }
    if (!launches || mine.length === 0) continue;
    // The call and the activities that it launched share a correlation id.
    const ids = new Set(mine.map((i) => set.number("correlation_id", i)));
    for (const other of [events.api, events.act]) {
      for (let i = 0; i < other.length; i++) {
        const id = other.number("correlation_id", i);
        if (id !== undefined && Number(id) >= 0 && ids.has(id)) lit[other.prefix][i] = 1;
      }
    }
  }
  return lit;
}

const KINDS = ["", "kernel", "memcpy", "memset", "synchronization", "graph_launch"];

function equalTo(set: EventSet, equals: Record<string, Cell | Cell[]>): (i: number) => boolean {
  const tests = Object.entries(equals).map(([column, wanted]) => {
    const values = Array.isArray(wanted) ? wanted : [wanted];
    // These two are sent in a form of their own.
    if (column === "kind") return (i: number) => values.includes(KINDS[set.kind?.[i] ?? 0] || null);
    if (column === "op_id") return (i: number) => values.includes(null) && set.op[i] < 0;
    return (i: number): boolean =>
      values.some((value) => {
        if (typeof value === "string") return set.name(column, i) === value;
        const number = Number(set.number(column, i) ?? -1);
        return value === null ? number < 0 : number === Number(value);
      });
  });
  return (i) => tests.every((test) => test(i));
}
