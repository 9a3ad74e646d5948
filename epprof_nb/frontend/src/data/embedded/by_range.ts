// Breakdown of a time range from the embedded data of a page; a live view gets Python's exact one.
//
// If the page has every event, the parts of events within the range are added. If it merges events,
// sums by time bin replace them, and only the parts of bins at the two ends of the range are
// estimated.

import type { Range } from "../../base/time_scale.ts";
import type { RangeBreakdown } from "../by_range.ts";
import { cumulativeCounter, unknownTime, utilisation } from "../counters.ts";
import type { Events } from "../events.ts";
import { BUSY_KINDS, KIND } from "../kinds.ts";
import { visibleEvents } from "../visible_events.ts";
import type { ColumnBundle } from "../wire_format.ts";
import type { ProfileHeader } from "../wire_types.ts";
import { Bins } from "./bin_sums.ts";
import type { Detail } from "./embedded_events.ts";
import { RangeSums } from "./range_sums.ts";

const BUSY = new Set<number>(BUSY_KINDS.map((name) => KIND[name]));

type Page = ColumnBundle<ProfileHeader>;

/** Break down a range: the whole profile by Python's result, others from bins or events. */
export async function byRange(
  events: Events,
  page: Page,
  range: Range,
  detail: Pick<Detail, "activities"> | null = null,
): Promise<RangeBreakdown> {
  const { whole, bins } = page.header;
  if (whole && range.start <= whole.start && range.end >= whole.end) return whole;
  if (!bins) return fromEvents(detail ? await detail.activities([range]) : events, page, range);
  const divided = new Bins(page, bins);
  const { parts } = divided.divide(range);
  if (!detail || !parts.length) return fromBins(events, page, divided, range);
  const atEnds = await detail.activities(parts.map(({ part }) => part));
  return fromBinsAndEvents(atEnds, page, divided, range);
}

/** Break down a range by its events: all are drawn, or the page has no sums by bin. */
function fromEvents(events: Events, page: Page, range: Range): RangeBreakdown {
  const sums = new RangeSums();
  const { times, merged } = addEvents(sums, events, range);
  const result: RangeBreakdown = {
    ...range,
    devices: devices(page, range, (device, position) =>
      merged ? fromCounter(page, position, range) : coveredTime(times.get(device) ?? []),
    ),
    ...sums.totals(),
  };
  if (merged) result.estimated = { exact: null, bin: null };
  return result;
}

function fromBins(events: Events, page: Page, bins: Bins, range: Range): RangeBreakdown {
  const sums = new RangeSums();
  const { first, end, parts } = bins.divide(range);
  // Work that began before the range is counted once, in its first bin.
  const isFirst = (start: number): boolean => start <= range.start;
  bins.add(sums, first, end, end > first && !parts.some(({ part }) => isFirst(part.start)));
  for (const { bin, part } of parts)
    bins.add(sums, bin, bin + 1, isFirst(part.start), shareOf(events, bins, bin, part));
  const result: RangeBreakdown = {
    ...range,
    devices: devices(page, range, (device, position) =>
      parts.reduce(
        (sum, { part }) => sum + fromCounter(page, position, part),
        bins.busy(device, first, end),
      ),
    ),
    ...sums.totals(),
  };
  if (parts.length) {
    const exact = end > first ? { start: bins.edges[first], end: bins.edges[end] } : null;
    result.estimated = { exact, bin: bins.length };
  }
  return result;
}

/** Break down a range by whole bins, and by the events in the parts of bins at its ends. */
function fromBinsAndEvents(events: Events, page: Page, bins: Bins, range: Range): RangeBreakdown {
  const sums = new RangeSums();
  const { first, end, parts } = bins.divide(range);
  const isFirst = (start: number): boolean => start <= range.start;
  const times = parts.map(({ part }) => addEvents(sums, events, part, isFirst(part.start)).times);
  bins.add(sums, first, end, end > first && !parts.some(({ part }) => isFirst(part.start)));
  return {
    ...range,
    devices: devices(page, range, (device) =>
      times.reduce(
        (sum, of) => sum + coveredTime(of.get(device) ?? []),
        bins.busy(device, first, end),
      ),
    ),
    ...sums.totals(),
  };
}

/** Share of a bin's work that lies in a part of the bin, by the coverage of rectangles. */
function shareOf(events: Events, bins: Bins, bin: number, part: Range): number {
  const covered = (range: Range): number => {
    const { act } = events;
    let sum = 0;
    for (const slice of act.slices) {
      const [first, end] = visibleEvents(slice, range);
      for (let i = first; i < end; i++) {
        const [from, until] = [act.start[i], act.start[i] + act.dur[i]];
        const overlap = Math.min(until, range.end) - Math.max(from, range.start);
        if (!BUSY.has(act.kind?.[i] ?? KIND.other) || overlap <= 0) continue;
        sum += ((act.cover?.[i] ?? act.dur[i]) * overlap) / act.dur[i];
      }
    }
    return sum;
  };
  const all = { start: bins.edges[bin], end: bins.edges[bin + 1] };
  const total = covered(all);
  if (total > 0) return Math.min(covered(part) / total, 1);
  return (part.end - part.start) / (all.end - all.start);
}

/**
 * Add the parts of events within a range; those that began before it are counted if `running`.
 * Returns the time ranges by device, and whether a rectangle stands for several events.
 */
function addEvents(
  sums: RangeSums,
  { act, op }: Events,
  range: Range,
  running = true,
): { times: Map<number, [number, number][]>; merged: boolean } {
  const times = new Map<number, [number, number][]>();
  let merged = false;
  for (const slice of act.slices) {
    const [first, end] = visibleEvents(slice, range);
    for (let i = first; i < end; i++) {
      const kind = act.kind?.[i] ?? KIND.other;
      const from = act.start[i];
      const until = from + act.dur[i];
      const inside = until > range.start || from >= range.start;
      if (!BUSY.has(kind) || !inside || from >= range.end) continue;
      const [low, high] = [Math.max(from, range.start), Math.min(until, range.end)];
      const fraction = act.dur[i] > 0 ? (high - low) / act.dur[i] : 1;
      const members = act.members?.[i] ?? 1;
      const counted = running || from >= range.start;
      const count = !counted ? 0 : members > 1 ? Math.max(members * fraction, 1) : 1;
      if (members > 1) merged = true;
      const device = Number(act.number("device_id", i) ?? -1);
      const intervals = times.get(device) ?? [];
      times.set(device, intervals);
      intervals.push([low, high]);
      const owner = act.op[i];
      sums.add(
        kind,
        act.name("op_name", i) || (owner < 0 ? "" : op.name("name", owner)) || "(no op)",
        act.label(i) || "(no name)",
        count,
        (act.cover?.[i] ?? act.dur[i]) * fraction,
        Math.max(Number(act.number("bytes", i) ?? 0), 0) * count,
      );
    }
  }
  return { times, merged };
}

function devices(
  page: Page,
  range: Range,
  busy: (device: number, position: number) => number,
): RangeBreakdown["devices"] {
  return page.header.counters.flatMap((counter, i) => {
    const { what, device, name } = counter;
    if (what !== "busy") return [];
    const unknown = Math.round(unknownTime(counter, range));
    return [{ device, name, busy: Math.round(busy(device, i)), ...(unknown ? { unknown } : {}) }];
  });
}

function fromCounter(page: Page, position: number, range: Range): number {
  return utilisation(cumulativeCounter(page, position), range) * (range.end - range.start);
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
