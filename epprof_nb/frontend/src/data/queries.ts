// What can be selected, and what is told about it: the same words as in Python's views/select.py
// and views/related.py.

import type { Range } from "../base/time_scale.ts";
import type { Cell, EventRef, EventSet, Events, Fields, Hit, Prefix } from "./model.ts";

export type SelectionQuery =
  | { what: "event"; prefix: Prefix; row: number }
  | { what: "where"; prefix: Prefix; equals: Record<string, Cell | Cell[]> }
  | { what: "search"; pattern: string }
  /** Rows that Python was given as a DataFrame. */
  | { what: "rows"; number?: number };

/** Which event to step to: by number from 0 (it goes round), or the first one from a time on. */
export type SeekTarget = { number: number } | { at: number } | Record<string, never>;

/** What one event has to do with others. */
export interface Related {
  /** The ops around it, outermost first; an op's own chain ends with itself. */
  chain: EventRef[];
  line: { cell: string; line: number; text: string } | null;
  call: EventRef | null;
  /** From the start of its API call to its own start, ns. */
  delay: number | null;
  /** From launches to activities, the longest one first; of very many, those in the window. */
  flows: [from: EventRef, to: EventRef][];
  launched: number;
  before: EventRef | null;
  after: EventRef | null;
  same: { before: EventRef | null; after: EventRef | null; number: number; count: number };
}

/** What happened in a span of time; see Python's views/span.py. */
export interface RangeBreakdown {
  start: number;
  end: number;
  devices: { device: number; name: string; busy: number }[];
  device_ns: number;
  kernels: number;
  copies: number;
  sets: number;
  bytes: number;
  ops: RankedTotals;
  names: RankedTotals;
  /** Whether some of it was added up from rectangles that stand for several events. */
  approximate?: boolean;
}

export interface RankedTotals {
  rows: [name: string, count: number, ns: number][];
  total: number;
}

export function rangeOf({ start, dur }: EventRef): Range {
  return { start, end: start + dur };
}

export function sameRef(a: EventRef | null, b: EventRef | null): boolean {
  return a !== null && b !== null && a.prefix === b.prefix && a.row === b.row;
}

/** The event as something to refer to, after other events are drawn. */
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

/** The event of a row, where it is drawn by itself or as the longest of several. */
export function hitOf(
  events: Events,
  { prefix, row }: { prefix: Prefix; row: number },
): Hit | null {
  const set = events[prefix];
  const event = set.row ? set.row.indexOf(row) : row;
  return event >= 0 && event < set.length ? { set, event } : null;
}

/** How many events a rectangle stands for. */
export function memberCount(set: EventSet, event: number): number {
  return set.members?.[event] ?? 1;
}

/** What of an event was sent with it. */
export function fieldsOf(set: EventSet, event: number): Fields {
  const fields: Fields = {};
  for (const column of set.columns()) {
    const value = set.named(column) ? set.name(column, event) : set.number(column, event);
    if (value !== undefined && value !== "") fields[column] = value;
  }
  return fields;
}
