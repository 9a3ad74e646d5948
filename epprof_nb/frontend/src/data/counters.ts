// Counters over time (views/counters.py): sums, read as rates, and levels with their extremes.

import { firstAbove } from "../base/binary_search.ts";
import { type Range, toTime } from "../base/time_scale.ts";
import type { Bundle } from "./wire_format.ts";

/** Points of a counter at most, as views/counters.py has it. */
export const POINTS = 4096;

/** What grows: exact at each time, a straight line in between; `value` in ns or bytes. */
export interface Sum {
  t: Float64Array;
  value: Float64Array;
}

/** What goes up and down: its least and most from each time to the next. */
export interface Level {
  t: Float64Array;
  low: Float64Array;
  high: Float64Array;
}

/** The columns of the counter at `position` among the overview's. */
export function sum(bundle: Bundle<object>, position: number): Sum {
  return { t: numbers(bundle, position, "t"), value: numbers(bundle, position, "value") };
}

export function level(bundle: Bundle<object>, position: number): Level {
  return {
    t: numbers(bundle, position, "t"),
    low: numbers(bundle, position, "low"),
    high: numbers(bundle, position, "high"),
  };
}

function numbers(bundle: Bundle<object>, position: number, name: string): Float64Array {
  const column = bundle.column(`counter.${position}.${name}`);
  return column instanceof Float64Array ? column : new Float64Array(0);
}

interface Curve {
  t: Float64Array;
  value: Float64Array;
}

/** The sum until `time`. */
export function until({ t, value }: Curve, time: number): number {
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

/** By how much the sum grows within the stretch, a nanosecond. */
export function rate(curve: Curve, { start, end }: Range): number {
  return end > start ? (until(curve, end) - until(curve, start)) / (end - start) : 0;
}

/** Share of the stretch for which the device was busy, 0 to 1. */
export function utilisation(curve: Curve, stretch: Range): number {
  return Math.min(Math.max(rate(curve, stretch), 0), 1);
}

/** By how much the sum grows within each pixel of a window, a nanosecond. */
export function rates({ t, value }: Curve, view: Range, width: number): Float64Array {
  const found = new Float64Array(Math.ceil(width));
  const last = t.length - 1;
  if (last < 0) return found;
  const pixel = (view.end - view.start) / width;
  let before = until({ t, value }, view.start);
  // Pixels and points ascend together: one walk instead of a search for each.
  let at = Math.max(firstAbove(t, view.start, 0, t.length) - 1, 0);
  for (let x = 0; x < found.length; x++) {
    const time = toTime(x + 1, view, width);
    while (at < last && t[at + 1] <= time) at++;
    const step = at < last ? t[at + 1] - t[at] : 0;
    const part = step > 0 ? (Math.max(time - t[at], 0) / step) * (value[at + 1] - value[at]) : 0;
    const now = time <= t[0] ? 0 : value[at] + part;
    found[x] = (now - before) / pixel;
    before = now;
  }
  return found;
}

/** Least and most within each pixel of a window. */
export function ranges(
  { t, low, high }: Level,
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

/** Least and most within the stretch. */
export function extremes({ t, low, high }: Level, { start, end }: Range): [number, number] {
  let at = firstAbove(t, start, 0, t.length) - 1;
  let [least, most] = at < 0 ? [0, 0] : [low[at], high[at]];
  for (at++; at < t.length && t[at] < end; at++) {
    least = Math.min(least, low[at]);
    most = Math.max(most, high[at]);
  }
  return [least, most];
}
