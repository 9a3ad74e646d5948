// Counters over time (views/counters.py): sums, read as rates, and levels with their extremes.

import { firstAbove } from "./cull.ts";
import type { Bundle } from "./decode.ts";
import type { Range } from "./scale.ts";

/** Points of a counter at most, as views/counters.py has it. */
export const POINTS = 4096;

/** A counter that the profile has: of which device, and what it counts. */
export interface Track {
  what: "busy" | "launches" | "copied";
  device: number;
  name: string;
}

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
  t: ArrayLike<number>;
  value: ArrayLike<number>;
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
