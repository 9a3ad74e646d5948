// Selection queries and their results, as defined by Python's `views/queries`.

import type { Range } from "../base/time_scale.ts";
import type { EventSet, Events, Fields, Hit } from "./events.ts";
import { KIND, KINDS } from "./kinds.ts";
import type { EventRef, Prefix, Where } from "./wire_types.ts";

export type SelectionQuery =
  | { what: "event"; prefix: Prefix; row: number }
  | ({ what: "where" } & Where)
  | { what: "search"; pattern: string }
  /** Rows that were passed to Python as a DataFrame. */
  | { what: "rows"; number?: number };

/** Event to seek to: by number from 0 (wrapping around), or the first one from a time on. */
export type SeekTarget = { number: number } | { at: number } | Record<string, never>;

/** Relations of one event to others. */
export interface Related {
  /** Enclosing ops, outermost first; the chain of an op ends with itself. */
  chain: EventRef[];
  line: { cell: string; line: number; text: string } | null;
  call: EventRef | null;
  /** Time from the start of its API call to its own start, ns. */
  delay: number | null;
  /** Pairs of launch and activity, longest activity first; if very many, those in the window. */
  flows: [from: EventRef, to: EventRef][];
  launched: number;
  before: EventRef | null;
  after: EventRef | null;
  /** Its place among the events of its name; the number is null if the page merges events. */
  same: { before: EventRef | null; after: EventRef | null; number: number | null; count: number };
}

export function rangeOf({ start, dur }: EventRef): Range {
  return { start, end: start + dur };
}

export function sameRef(a: EventRef | null, b: EventRef | null): boolean {
  return a !== null && b !== null && a.prefix === b.prefix && a.row === b.row;
}

/** Reference to an event that stays valid when other events are drawn. */
export function refOf({ set, event }: Hit): EventRef {
  const slice = set.slices.find(({ first, end }) => event >= first && event < end);
  return {
    prefix: set.prefix,
    row: set.row?.[event] ?? event,
    name: set.name("name", event),
    start: set.start[event],
    dur: set.dur[event],
    lane: slice?.lane ?? -1,
    level: slice?.row ?? 0,
  };
}

/** Find the event of a row, if it is drawn alone or as the longest of several. */
export function hitOf(
  events: Events,
  { prefix, row }: { prefix: Prefix; row: number },
): Hit | null {
  const set = events[prefix];
  const event = set.row ? set.row.indexOf(row) : row;
  return event >= 0 && event < set.length ? { set, event } : null;
}

/** Number of events a rectangle stands for. */
export function memberCount(set: EventSet, event: number): number {
  return set.members?.[event] ?? 1;
}

/** Columns that describe the rectangle, which may stand for several events. */
const OF_RECTANGLE = new Set(["start", "dur", "members", "cover"]);

/** Fields that were sent with an event; a merged event has no times. */
export function fieldsOf(set: EventSet, event: number): Fields {
  const fields: Fields = {};
  if (memberCount(set, event) === 1) {
    fields.start_ns = set.start[event];
    fields.end_ns = set.start[event] + set.dur[event];
  }
  for (const column of set.columns()) {
    if (OF_RECTANGLE.has(column)) continue;
    const value = set.named(column) ? set.name(column, event) : set.number(column, event);
    if (value !== undefined && value !== "") fields[column] = value;
  }
  // An op has the kind of most of its activities, which is not a field of the op.
  if (set.prefix === "act") fields.kind = KINDS[set.kind?.[event] ?? KIND.other];
  else delete fields.kind;
  return fields;
}
