// Highlight of a query: an op's subtree and what it launched, a kernel with its launch and its ops,
// or the matches of a search.

import type { EventSet, Events, Highlight, HighlightMasks } from "../events.ts";
import { KIND, type Kind, kindCode } from "../kinds.ts";
import { hitOf, type SelectionQuery } from "../selection_queries.ts";
import type { Cell, EventRef, Prefix } from "../wire_types.ts";
import { matches } from "./search_pattern.ts";

type EventRows = Partial<Record<Prefix, number[]>>;

/** Find the drawn events of a query by table, without related events. */
export function matchingEvents(events: Events, query: SelectionQuery): EventRows {
  if (query.what === "event") {
    const at = hitOf(events, query);
    return at ? { [query.prefix]: [at.event] } : {};
  }
  if (query.what === "where") {
    const set = events[query.prefix];
    return { [query.prefix]: filterEvents(set, equalTo(set, query.equals)) };
  }
  const rows: EventRows = {};
  const hits = query.what === "search" ? matchingNames(events, query.pattern) : null;
  for (const set of events.sets()) {
    const pinned = hits ? null : set.pinned;
    rows[set.prefix] = filterEvents(
      set,
      (i) => (hits ? hits[set.code("name", i)] : pinned?.[i]) === 1,
    );
  }
  return rows;
}

/** Match names; a kernel is found by its full name and by the short one. */
function matchingNames({ names, shortNames }: Events, pattern: string): Uint8Array {
  const hits = matches(names, pattern);
  const short = Object.entries(shortNames);
  const found = matches(
    short.map(([, name]) => name),
    pattern,
  );
  for (const [i, [code]] of short.entries()) if (found[i]) hits[Number(code)] = 1;
  return hits;
}

/** Compute the highlight of a query among the drawn events. */
export function highlightFor(events: Events, query: SelectionQuery): HighlightMasks {
  // Python's highlight of this window is exact, whatever is drawn.
  if (events.highlightKey === JSON.stringify(query)) {
    const masks = emptyHighlight(events);
    for (const set of events.sets())
      if (set.highlighted) masks[set.prefix] = Uint8Array.from(set.highlighted);
    return masks;
  }
  const rows = matchingEvents(events, query);
  return highlightRows(events, rows, query.what !== "search", query.what === "event");
}

/** Event to outline; null if it is not drawn. */
export function outlineOf(events: Events, at: EventRef | null): Highlight["outlined"] {
  const hit = at && hitOf(events, at);
  return hit && { prefix: hit.set.prefix, event: hit.event };
}

function emptyHighlight(events: Events): HighlightMasks {
  return {
    op: new Uint8Array(events.op.length),
    api: new Uint8Array(events.api.length),
    act: new Uint8Array(events.act.length),
  };
}

function filterEvents(set: EventSet, matches: (i: number) => boolean): number[] {
  const rows: number[] = [];
  for (let i = 0; i < set.length; i++) if (matches(i)) rows.push(i);
  return rows;
}

/**
 * Highlight rows; with `related` also their ops and descendants; with `launches` also their
 * launches.
 */
function highlightRows(
  events: Events,
  rows: EventRows,
  related: boolean,
  launches: boolean,
): HighlightMasks {
  const masks = emptyHighlight(events);
  for (const set of events.sets()) for (const i of rows[set.prefix] ?? []) masks[set.prefix][i] = 1;
  if (related && rows.op?.length) {
    const tree = events.subtree(rows.op);
    for (const op of tree) masks.op[op] = 1;
    for (const set of [events.api, events.act]) {
      for (let i = 0; i < set.length; i++) if (tree.has(set.op[i])) masks[set.prefix][i] = 1;
    }
  }
  for (const set of [events.api, events.act]) {
    const selected = rows[set.prefix] ?? [];
    for (const i of related ? selected : []) {
      for (let op = set.op[i]; op >= 0 && !masks.op[op]; op = events.op.op[op]) masks.op[op] = 1;
    }
    if (!launches || selected.length === 0) continue;
    // An API call and the activities it launched share a correlation id.
    const ids = new Set(selected.map((i) => set.number("correlation_id", i)));
    for (const other of [events.api, events.act]) {
      for (let i = 0; i < other.length; i++) {
        const id = other.number("correlation_id", i);
        if (id !== undefined && Number(id) >= 0 && ids.has(id)) masks[other.prefix][i] = 1;
      }
    }
  }
  return masks;
}

function equalTo(set: EventSet, equals: Record<string, Cell | Cell[]>): (i: number) => boolean {
  const tests = Object.entries(equals).map(([column, wanted]) => {
    const values = Array.isArray(wanted) ? wanted : [wanted];
    // These two columns are sent in another form.
    if (column === "kind") {
      const codes = new Set(
        values.map((name) => (name === null ? KIND.other : kindCode(`${name}`))),
      );
      return (i: number) => codes.has((set.kind?.[i] ?? KIND.other) as Kind);
    }
    if (column === "op_id") return (i: number) => values.includes(null) && set.op[i] < 0;
    // A row by stack may have thousands of values.
    const known = new Set(values.map((value) => (typeof value === "boolean" ? +value : value)));
    const isText = values.some((value) => typeof value === "string");
    return (i: number): boolean => {
      if (isText && known.has(set.name(column, i))) return true;
      const number = Number(set.number(column, i) ?? -1);
      return known.has(number < 0 ? null : number);
    };
  });
  return (i) => tests.every((test) => test(i));
}
