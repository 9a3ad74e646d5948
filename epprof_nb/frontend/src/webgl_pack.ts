// Events of one row as a GPU wants them: columns of float32, in which no nanosecond is lost.

import type { Stretch } from "./renderer.ts";
import { covered } from "./shapes.ts";

/** Floats of an event: start hi, lo; end hi, lo; gap before, gap after, share covered, kind. */
export const FLOATS = 8;
/** Gaps at a row's ends: longer than any profile. */
const ENDLESS = 1e30;

/** A number as two float32 whose sum it is: exact to about 48 bits, three days of nanoseconds. */
export function split(value: number): [hi: number, lo: number] {
  const hi = Math.fround(value);
  return [hi, Math.fround(value - hi)];
}

export interface Packed {
  data: Float32Array;
  /** Time that counts as 0 in `data`. */
  base: number;
  /** The event of each entry, where some events were left out. */
  events: Int32Array | null;
  /** Whether some events overlap, so that later ones must cover earlier ones. */
  overlap: boolean;
}

/** Packs the events of a stretch; `only` leaves out events whose value is 0. */
export function pack({ set, first, end }: Stretch, only?: Uint8Array): Packed {
  const { start, dur, kind } = set;
  const events = only ? chosen(only, first, end) : null;
  const length = events ? events.length : end - first;
  const data = new Float32Array(length * FLOATS);
  const base = length > 0 ? start[events ? events[0] : first] : 0;
  let overlap = false;
  let reach = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < length; i++) {
    const event = events ? events[i] : first + i;
    const from = start[event];
    // A duration below zero is a fault of a clock: such an event is an instant.
    const until = from + Math.max(dur[event], 0);
    const at = i * FLOATS;
    [data[at], data[at + 1]] = split(from - base);
    [data[at + 2], data[at + 3]] = split(until - base);
    const gap = i > 0 ? from - reach : ENDLESS;
    if (gap < 0) overlap = true;
    data[at + 4] = Math.max(gap, 0);
    data[at + 5] = ENDLESS;
    if (i > 0) data[at - FLOATS + 5] = data[at + 4];
    data[at + 6] = covered(set, event);
    data[at + 7] = kind?.[event] ?? 0;
    reach = Math.max(reach, until);
  }
  return { data, base, events, overlap };
}

function chosen(only: Uint8Array, first: number, end: number): Int32Array {
  let length = 0;
  for (let i = first; i < end; i++) if (only[i]) length++;
  const events = new Int32Array(length);
  let at = 0;
  for (let i = first; i < end; i++) if (only[i]) events[at++] = i;
  return events;
}

/** First entry that stands for `event` or a later one. */
export function entry({ events }: Pick<Packed, "events">, event: number, first: number): number {
  if (!events) return event - first;
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle] < event) low = middle + 1;
    else high = middle;
  }
  return low;
}
