// The breakdown of a span from what the page embeds; Python's views/span.py is exact for a live one.

import type { Range } from "../../base/time_scale.ts";
import { cumulativeCounter, utilisation } from "../counters.ts";
import type { Events, Overview } from "../model.ts";
import type { RangeBreakdown, RankedTotals } from "../queries.ts";
import { visible } from "../visible_events.ts";
import type { Bundle } from "../wire_format.ts";

const KERNEL = 1;
const COPY = 2;
const SET = 3;
const TOP = 12;

/** Adds up what the span holds of each event, or of the events that a rectangle stands for. */
export function rangeBreakdown(
  events: Events,
  bundle: Bundle<Overview>,
  span: Range,
): RangeBreakdown {
  const { act, op } = events;
  const names = new Map<string, [number, number]>();
  const ops = new Map<string, [number, number]>();
  const told: RangeBreakdown = {
    start: span.start,
    end: span.end,
    devices: [],
    device_ns: 0,
    kernels: 0,
    copies: 0,
    sets: 0,
    bytes: 0,
    ops: { rows: [], total: 0 },
    names: { rows: [], total: 0 },
    approximate: false,
  };
  const times = new Map<number, [number, number][]>();
  for (const slice of act.slices) {
    const [first, end] = visible(slice, span);
    for (let i = first; i < end; i++) {
      const kind = act.kind?.[i] ?? 0;
      const from = act.start[i];
      const until = from + act.dur[i];
      const inside = until > span.start || from >= span.start;
      if (kind < KERNEL || kind > SET || !inside || from >= span.end) continue;
      const overlap = Math.min(until, span.end) - Math.max(from, span.start);
      const share = act.dur[i] > 0 ? overlap / act.dur[i] : 1;
      const members = act.members?.[i] ?? 1;
      const covered = act.cover?.[i] ?? act.dur[i];
      const spent = covered * share;
      const count = members > 1 ? Math.max(members * share, 1) : 1;
      if (members > 1) told.approximate = true;
      told.device_ns += spent;
      const device = Number(act.number("device_id", i) ?? -1);
      const mine = times.get(device) ?? [];
      times.set(device, mine);
      mine.push([Math.max(from, span.start), Math.min(until, span.end)]);
      if (kind === KERNEL) told.kernels += count;
      else if (kind === COPY) {
        told.copies += count;
        told.bytes += Math.max(Number(act.number("bytes", i) ?? 0), 0) * count;
      } else told.sets += count;
      add(names, act.name("name", i) || "(no name)", count, spent);
      const owner = act.op[i];
      add(ops, owner < 0 ? "(no op)" : op.name("name", owner) || "(no name)", count, spent);
    }
  }
  told.devices = bundle.header.counters.flatMap(({ what, device, name }, i) => {
    if (what !== "busy") return [];
    // The curve has less detail than single events, but knows what merged ones cover.
    const busy = told.approximate
      ? utilisation(cumulativeCounter(bundle, i), span) * (span.end - span.start)
      : coveredTime(times.get(device) ?? []);
    return [{ device, name, busy: Math.round(busy) }];
  });
  for (const key of ["kernels", "copies", "sets", "bytes", "device_ns"] as const) {
    told[key] = Math.round(told[key]);
  }
  told.names = top(names);
  told.ops = top(ops);
  return told;
}

/** Time that intervals cover together. */
function coveredTime(times: [start: number, end: number][]): number {
  let covered = 0;
  let reach = Number.NEGATIVE_INFINITY;
  for (const [start, end] of times.sort((a, b) => a[0] - b[0])) {
    if (end > reach) covered += end - Math.max(start, reach);
    reach = Math.max(reach, end);
  }
  return covered;
}

function add(sums: Map<string, [number, number]>, name: string, count: number, ns: number): void {
  const sum = sums.get(name);
  if (sum) {
    sum[0] += count;
    sum[1] += ns;
  } else sums.set(name, [count, ns]);
}

function top(sums: Map<string, [number, number]>): RankedTotals {
  const rows = [...sums].map(([name, [count, ns]]): RankedTotals["rows"][number] => [
    name,
    Math.round(count),
    Math.round(ns),
  ]);
  rows.sort((a, b) => b[2] - a[2] || b[1] - a[1]);
  return { rows: rows.slice(0, TOP), total: rows.length };
}
