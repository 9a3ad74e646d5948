// Events put together for a zoom: where many share a pixel, one rectangle stands for them.
//
// A level serves an octave of zooms and all windows, so most frames find theirs made, hold still
// while they move, and draw a few rectangles a pixel however many events there are.

import type { EventColumns, RowSlice } from "../data/model.ts";
import { covered } from "./event_style.ts";

/** Levels kept of a row: the one shown, and its neighbours in a zoom that goes to and fro. */
const KEPT = 3;
/** So many events a pixel are drawn as they are: there is not much to put together. */
const FEW = 2;

type Levels = Map<number, RowSlice>;
const whole = new WeakMap<RowSlice, Levels>();
const parts = new WeakMap<Uint8Array, WeakMap<RowSlice, Levels>>();

/**
 * The stretch as rectangles for a zoom of `pixel` ns a pixel; itself where few share a pixel.
 *
 * `only` leaves out events whose value is 0.
 */
export function level(slice: RowSlice, pixel: number, only?: Uint8Array): RowSlice {
  if (!only && sparse(slice, pixel)) return slice;
  let owner = whole;
  if (only) {
    owner = parts.get(only) ?? new WeakMap();
    parts.set(only, owner);
  }
  const known = owner.get(slice) ?? new Map();
  owner.set(slice, known);
  const octave = Math.floor(Math.log2(pixel));
  let made = known.get(octave);
  if (!made) {
    made = merge(slice, 2 ** octave, only);
    if (known.size >= KEPT) known.delete(known.keys().next().value ?? octave);
    known.set(octave, made);
  }
  return made;
}

function sparse({ set, first, end }: RowSlice, pixel: number): boolean {
  if (first >= end) return true;
  return end - first <= (FEW * (set.reach[end - 1] - set.start[first])) / pixel;
}

/** Puts together what is thinner than `pixel` ns with the neighbours that start within as much. */
export function merge(slice: RowSlice, pixel: number, only?: Uint8Array): RowSlice {
  const { set, first, end } = slice;
  const { start, dur } = set;
  // The longest event of each rectangle, and where its members lie and how long they cover it.
  const longest: number[] = [];
  const from: number[] = [];
  const until: number[] = [];
  const busy: number[] = [];
  const members: number[] = [];
  let taken = 0;
  let last = -1;
  for (let i = first; i < end; i++) {
    if (only && only[i] === 0) continue;
    taken++;
    const left = start[i];
    const right = left + Math.max(dur[i], 0);
    const cover = (right - left) * covered(set, i);
    if (
      last >= 0 &&
      right - left < pixel &&
      left < Math.max(until[last], from[last] + pixel) &&
      (members[last] > 1 || until[last] - from[last] < pixel)
    ) {
      until[last] = Math.max(until[last], right);
      busy[last] += cover;
      members[last]++;
      if (dur[i] > dur[longest[last]]) longest[last] = i;
    } else {
      last = longest.length;
      longest.push(i);
      from.push(left);
      until.push(right);
      busy.push(cover);
      members.push(1);
    }
  }
  if (taken === longest.length && taken === end - first) return slice;
  const starts = Float64Array.from(from);
  const lengths = Float64Array.from(from, (left, i) => until[i] - left);
  const reach = new Float64Array(starts.length);
  let latest = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < reach.length; i++) {
    latest = Math.max(latest, until[i]);
    reach[i] = latest;
  }
  const { kind } = set;
  const merged: EventColumns = {
    prefix: set.prefix,
    start: starts,
    dur: lengths,
    reach,
    kind: kind && Float64Array.from(longest, (event) => kind[event]),
    members: Float64Array.from(members),
    cover: Float64Array.from(busy, (cover, i) => Math.min(cover, lengths[i])),
    name: (column, i) => set.name(column, longest[i]),
  };
  return { set: merged, first: 0, end: starts.length };
}
