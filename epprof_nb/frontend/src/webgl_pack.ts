// Events of one row as a GPU wants them: columns of float32, in which no nanosecond is lost.

import type { Stretch } from "./data/model.ts";
import { covered } from "./render/event_style.ts";

/** Floats of an event: start hi, lo; end hi, lo; gap before, gap after, share covered, kind. */
export const FLOATS = 8;
/** Texels a line of the texture that holds them; an event has two, of four floats each. */
export const TEXTURE_WIDTH = 256;
const LINE = TEXTURE_WIDTH * 4;
/** Gaps at a row's ends: longer than any profile. */
const ENDLESS = 1e30;

/** A number as two float32 whose sum it is: exact to about 48 bits, three days of nanoseconds. */
export function split(value: number): [hi: number, lo: number] {
  const hi = Math.fround(value);
  return [hi, Math.fround(value - hi)];
}

export interface Packed {
  /** Whole lines of the texture. */
  data: Float32Array;
  /** Time that counts as 0 in `data`. */
  base: number;
}

export function pack({ set, first, end }: Stretch): Packed {
  const { start, dur, kind } = set;
  const data = new Float32Array(Math.max(Math.ceil(((end - first) * FLOATS) / LINE), 1) * LINE);
  const base = first < end ? start[first] : 0;
  let reach = Number.NEGATIVE_INFINITY;
  for (let event = first; event < end; event++) {
    const from = start[event];
    // A duration below zero is a fault of a clock: such an event is an instant.
    const until = from + Math.max(dur[event], 0);
    const at = (event - first) * FLOATS;
    [data[at], data[at + 1]] = split(from - base);
    [data[at + 2], data[at + 3]] = split(until - base);
    const gap = event > first ? from - reach : ENDLESS;
    data[at + 4] = Math.max(gap, 0);
    data[at + 5] = ENDLESS;
    if (event > first) data[at - FLOATS + 5] = data[at + 4];
    data[at + 6] = covered(set, event);
    data[at + 7] = kind?.[event] ?? 0;
    reach = Math.max(reach, until);
  }
  return { data, base };
}
