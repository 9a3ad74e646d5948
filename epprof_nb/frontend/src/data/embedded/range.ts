// Breakdown of a time range from the embedded events; Python's is exact for a live view.

import type { Range } from "../../base/time_scale.ts";
import { cumulativeCounter, utilisation } from "../counters.ts";
import { BUSY_KINDS, KIND } from "../kinds.ts";
import type { Events, Overview } from "../model.ts";
import type { RangeBreakdown, RankedTotals } from "../queries.ts";
import { visibleEvents } from "../visible_events.ts";
import type { Bundle } from "../wire_format.ts";

const BUSY = new Set<number>(BUSY_KINDS.map((name) => KIND[name]));
const TOP = 12;

/** Add up the parts of events within a range, or of the events a rectangle stands for. */
export function rangeBreakdown(
  events: Events,
  bundle: Bundle<Overview>,
  range: Range,
): RangeBreakdown {
  const { act, op } = events;
  const names = new Map<string, [number, number]>();
  const ops = new Map<string, [number, number]>();
  const totals: RangeBreakdown = {
    start: range.start,
    end: range.end,
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
    const [first, end] = visibleEvents(slice, range);
    for (let i = first; i < end; i++) {
      const kind = act.kind?.[i] ?? KIND.other;
      const from = act.start[i];
      const until = from + act.dur[i];
      const inside = until > range.start || from >= range.start;
      if (!BUSY.has(kind) || !inside || from >= range.end) continue;
      const overlap = Math.min(until, range.end) - Math.max(from, range.start);
      const fraction = act.dur[i] > 0 ? overlap / act.dur[i] : 1;
      const members = act.members?.[i] ?? 1;
      const covered = act.cover?.[i] ?? act.dur[i];
      const ns = covered * fraction;
      const count = members > 1 ? Math.max(members * fraction, 1) : 1;
      if (members > 1) totals.approximate = true;
      totals.device_ns += ns;
      const device = Number(act.number("device_id", i) ?? -1);
      const intervals = times.get(device) ?? [];
      times.set(device, intervals);
      intervals.push([Math.max(from, range.start), Math.min(until, range.end)]);
      if (kind === KIND.kernel) totals.kernels += count;
      else if (kind === KIND.memcpy) {
        totals.copies += count;
        totals.bytes += Math.max(Number(act.number("bytes", i) ?? 0), 0) * count;
      } else totals.sets += count;
      add(names, act.label(i) || "(no name)", count, ns);
      const owner = act.op[i];
      add(ops, owner < 0 ? "(no op)" : op.name("name", owner) || "(no name)", count, ns);
    }
  }
  totals.devices = bundle.header.counters.flatMap(({ what, device, name }, i) => {
    if (what !== "busy") return [];
    // The counter has less detail than single events, but includes what merged ones cover.
    const busy = totals.approximate
      ? utilisation(cumulativeCounter(bundle, i), range) * (range.end - range.start)
      : coveredTime(times.get(device) ?? []);
    return [{ device, name, busy: Math.round(busy) }];
  });
  for (const key of ["kernels", "copies", "sets", "bytes", "device_ns"] as const) {
    totals[key] = Math.round(totals[key]);
  }
  totals.names = top(names);
  totals.ops = top(ops);
  return totals;
}

/** Time covered by the union of intervals. */
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
