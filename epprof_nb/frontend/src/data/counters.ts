// Counters over time: cumulative ones, read as rates, and ranges with their extremes.

import { firstAbove } from "../base/binary_search.ts";
import { type Range, toTime } from "../base/time_scale.ts";
import type { ColumnBundle } from "./wire_format.ts";
import type { Counter } from "./wire_types.ts";

/** Maximum number of points of a counter; must match the Python side. */
export const MAX_POINTS = 4096;

/** Cumulative counter in ns or bytes: exact at each time, linear in between. */
interface CumulativeCounter {
  t: Float64Array;
  value: Float64Array;
}

/** Counter that rises and falls: its minimum and maximum from each time to the next. */
interface RangeCounter {
  t: Float64Array;
  low: Float64Array;
  high: Float64Array;
}

/** Read the columns of the counter at `position` of the header's counters. */
export function cumulativeCounter(
  bundle: ColumnBundle<object>,
  position: number,
): CumulativeCounter {
  return { t: numbers(bundle, position, "t"), value: numbers(bundle, position, "value") };
}

export function rangeCounter(bundle: ColumnBundle<object>, position: number): RangeCounter {
  return {
    t: numbers(bundle, position, "t"),
    low: numbers(bundle, position, "low"),
    high: numbers(bundle, position, "high"),
  };
}

/** Values of a column of the counter at `position`. */
export function numbers(
  bundle: ColumnBundle<object>,
  position: number,
  name: string,
): Float64Array {
  const column = bundle.column(`counter.${position}.${name}`);
  return column instanceof Float64Array ? column : new Float64Array(0);
}

interface Curve {
  t: Float64Array;
  value: Float64Array;
}

/** Cumulative value at `time`. */
export function valueAt({ t, value }: Curve, time: number): number {
  if (t.length === 0 || time <= t[0]) return 0;
  const last = t.length - 1;
  if (time >= t[last]) return value[last];
  let low = 0;
  let high = last;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (t[middle] <= time) low = middle;
    else high = middle;
  }
  const step = t[high] - t[low];
  return step > 0
    ? value[low] + ((value[high] - value[low]) * (time - t[low])) / step
    : value[high];
}

/** Mean growth per nanosecond within a time range. */
export function meanRate(curve: Curve, { start, end }: Range): number {
  return end > start ? (valueAt(curve, end) - valueAt(curve, start)) / (end - start) : 0;
}

/** Busy share of a time range, 0 to 1. */
export function utilisation(curve: Curve, range: Range): number {
  return Math.min(Math.max(meanRate(curve, range), 0), 1);
}

/** How much of a time range is unknown, because records are missing. */
export function unknownTime(counter: Counter, range: Range): number {
  let total = 0;
  for (const [start, end] of counter.unknown ?? [])
    total += Math.max(Math.min(end, range.end) - Math.max(start, range.start), 0);
  return total;
}

/** Growth per nanosecond within each pixel of a window. */
export function pixelRates({ t, value }: Curve, view: Range, width: number): Float64Array {
  const rates = new Float64Array(Math.ceil(width));
  const last = t.length - 1;
  if (last < 0) return rates;
  const pixel = (view.end - view.start) / width;
  let before = valueAt({ t, value }, view.start);
  // Pixels and points are both sorted: one pass instead of a search for each.
  let at = Math.max(firstAbove(t, view.start, 0, t.length) - 1, 0);
  for (let x = 0; x < rates.length; x++) {
    const time = toTime(x + 1, view, width);
    while (at < last && t[at + 1] <= time) at++;
    const step = at < last ? t[at + 1] - t[at] : 0;
    const part = step > 0 ? (Math.max(time - t[at], 0) / step) * (value[at + 1] - value[at]) : 0;
    const now = time <= t[0] ? 0 : value[at] + part;
    rates[x] = (now - before) / pixel;
    before = now;
  }
  return rates;
}

/** Minimum and maximum within each pixel of a window. */
export function pixelRanges(
  { t, low, high }: RangeCounter,
  view: Range,
  width: number,
): { least: Float64Array; most: Float64Array } {
  const least = new Float64Array(Math.ceil(width));
  const most = new Float64Array(Math.ceil(width));
  let at = firstAbove(t, view.start, 0, t.length) - 1;
  for (let x = 0; x < least.length; x++) {
    const [start, end] = [toTime(x, view, width), toTime(x + 1, view, width)];
    while (at + 1 < t.length && t[at + 1] <= start) at++;
    let [lowest, highest] = at < 0 ? [0, 0] : [low[at], high[at]];
    for (; at + 1 < t.length && t[at + 1] < end; at++) {
      lowest = Math.min(lowest, low[at + 1]);
      highest = Math.max(highest, high[at + 1]);
    }
    least[x] = lowest;
    most[x] = highest;
  }
  return { least, most };
}

/** Minimum and maximum within a time range. */
export function extremes({ t, low, high }: RangeCounter, { start, end }: Range): [number, number] {
  let at = firstAbove(t, start, 0, t.length) - 1;
  let [least, most] = at < 0 ? [0, 0] : [low[at], high[at]];
  for (at++; at < t.length && t[at] < end; at++) {
    least = Math.min(least, low[at]);
    most = Math.max(most, high[at]);
  }
  return [least, most];
}
