// Relations of one event among the embedded events; mirrors Python's answer for a live view.

import { sampleEvenly } from "../../base/evenly_spread.ts";
import type { EventSet, Events, Hit, LaneSlice } from "../events.ts";
import { isDeviceWork, KIND } from "../kinds.ts";
import { type Related, refOf } from "../selection_queries.ts";
import type { EventRef, ProfileHeader } from "../wire_types.ts";
import type { Groups } from "./groups.ts";

/** Maximum number of flows kept; fewer are drawn. */
const FLOWS = 3000;

export function related(
  events: Events,
  header: ProfileHeader,
  at: Hit,
  groups: Groups | null,
): Related {
  const { set, event } = at;
  const owner = set.prefix === "op" ? event : set.op[event];
  const chain = events.chain(owner).map((op) => refOf({ set: events.op, event: op }));
  const call = set.prefix === "act" ? callOf(events, set, event) : -1;
  const launched = activitiesOf(events, at);
  const delay = call < 0 ? null : Math.max(set.start[event] - events.api.start[call], 0);
  return {
    chain,
    line: lineOf(events, header, owner),
    call: call < 0 ? null : refOf({ set: events.api, event: call }),
    delay,
    flows: flows(events, at, launched),
    launched: groups ? knownLaunches(at) : launched.length,
    ...neighbours(set, event),
    same: groups ? sameNameCount(set, event, groups) : sameName(set, event),
  };
}

function lineOf(events: Events, header: ProfileHeader, op: number): Related["line"] {
  for (let at = op; at >= 0; at = events.op.op[at]) {
    const line = Number(events.op.number("line", at) ?? -1);
    const cell = events.op.name("cell", at);
    if (line <= 0 || !cell) continue;
    const source = header.source.find((one) => one.cell === cell);
    return { cell, line, text: source?.lines[line - 1]?.trim() ?? "" };
  }
  return null;
}

function correlation(set: EventSet, event: number): number {
  return Number(set.number("correlation_id", event) ?? -1);
}

function callOf(events: Events, set: EventSet, event: number): number {
  const id = correlation(set, event);
  if (id < 0) return -1;
  for (let i = 0; i < events.api.length; i++) if (correlation(events.api, i) === id) return i;
  return -1;
}

function activitiesOf(events: Events, { set, event }: Hit): number[] {
  const { act } = events;
  if (set.prefix === "act") return [event];
  const result: number[] = [];
  if (set.prefix === "api") {
    const id = correlation(set, event);
    for (let i = 0; i < act.length; i++) if (id >= 0 && correlation(act, i) === id) result.push(i);
  } else {
    const tree = events.subtree([event]);
    for (let i = 0; i < act.length; i++) {
      // A synchronization launches no work.
      if (tree.has(act.op[i]) && isDeviceWork(act.kind?.[i] ?? KIND.other)) result.push(i);
    }
  }
  return result.sort((a, b) => act.dur[b] - act.dur[a]);
}

function flows(events: Events, { set, event }: Hit, launched: number[]): [EventRef, EventRef][] {
  const calls = new Map<number, number>();
  for (let i = events.api.length - 1; i >= 0; i--) calls.set(correlation(events.api, i), i);
  const pairs: [EventRef, EventRef][] = [];
  // Keep the longest one, whatever is omitted.
  const others = launched.slice(1).sort((a, b) => events.act.start[a] - events.act.start[b]);
  for (const act of [...launched.slice(0, 1), ...sampleEvenly(others, FLOWS - 1)]) {
    const to = refOf({ set: events.act, event: act });
    const id = correlation(events.act, act);
    const call = set.prefix === "api" ? event : id >= 0 ? calls.get(id) : undefined;
    const op = events.act.op[act];
    if (call !== undefined) pairs.push([refOf({ set: events.api, event: call }), to]);
    else if (op >= 0) pairs.push([refOf({ set: events.op, event: op }), to]);
  }
  return pairs;
}

function neighbours(
  set: EventSet,
  event: number,
): { before: EventRef | null; after: EventRef | null } {
  const slice: LaneSlice | undefined = set.slices.find((s) => event >= s.first && event < s.end);
  const ref = (i: number): EventRef | null =>
    slice && i >= slice.first && i < slice.end ? refOf({ set, event: i }) : null;
  return { before: ref(event - 1), after: ref(event + 1) };
}

/** Number of launches of an op. Merged activities hide the launches of an API call. */
function knownLaunches({ set, event }: Hit): number {
  if (set.prefix === "act") return 1;
  return Math.max(Number(set.number("launches", event) ?? 0), 0);
}

/** Number of events of a name. Merged events hide its place among them, and its neighbours. */
function sameNameCount(set: EventSet, event: number, groups: Groups): Related["same"] {
  const name = set.name("name", event) || null;
  const total = groups.find({ what: "where", prefix: set.prefix, equals: { name } })?.count;
  return { before: null, after: null, number: null, count: total ?? 0 };
}

function sameName(set: EventSet, event: number): Related["same"] {
  const code = set.code("name", event);
  const same: number[] = [];
  for (let i = 0; i < set.length; i++) if (set.code("name", i) === code) same.push(i);
  same.sort((a, b) => set.start[a] - set.start[b] || a - b);
  const at = same.indexOf(event);
  const ref = (i: number): EventRef | null => (i in same ? refOf({ set, event: same[i] }) : null);
  return { before: ref(at - 1), after: ref(at + 1), number: at + 1, count: same.length };
}
