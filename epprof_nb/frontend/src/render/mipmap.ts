// Mip levels of a row: where many events share a pixel, one rectangle stands for them.
//
// A level serves an octave of zooms and all windows, so most frames find theirs cached, stay stable
// during a pan, and draw a few rectangles per pixel however many events there are.

import type { EventColumns, RowSlice } from "../data/events.ts";
import { coverage } from "./event_style.ts";

/** Cached levels per row: the one shown, and its neighbours while zooming back and forth. */
const KEPT = 3;
/** Up to this number of events per pixel, they are drawn unmerged. */
const FEW = 2;

interface Levels {
  /** Colours of the row when the levels were made. */
  variant: Uint8Array | undefined;
  byOctave: Map<number, RowSlice>;
}
const whole = new WeakMap<RowSlice, Levels>();
const parts = new WeakMap<Uint8Array, WeakMap<RowSlice, Levels>>();

/**
 * Row slice as rectangles for a zoom of `pixel` ns per pixel; the slice itself if few events share
 * a pixel.
 *
 * `only` omits events whose value is 0.
 */
export function mipLevel(row: RowSlice, pixel: number, only?: Uint8Array): RowSlice {
  if (!only && sparse(row, pixel)) return row;
  let owner = whole;
  if (only) {
    owner = parts.get(only) ?? new WeakMap();
    parts.set(only, owner);
  }
  const { variant } = row.set;
  let levels = owner.get(row);
  if (!levels || levels.variant !== variant) {
    levels = { variant, byOctave: new Map() };
    owner.set(row, levels);
  }
  const known = levels.byOctave;
  const octave = Math.floor(Math.log2(pixel));
  let made = known.get(octave);
  if (!made) {
    made = mergeNarrow(row, 2 ** octave, only);
    if (known.size >= KEPT) known.delete(known.keys().next().value ?? octave);
    known.set(octave, made);
  }
  return made;
}

function sparse({ set, first, end }: RowSlice, pixel: number): boolean {
  if (first >= end) return true;
  return end - first <= (FEW * (set.reach[end - 1] - set.start[first])) / pixel;
}

/** Merge events shorter than `pixel` ns with the neighbours that start within as much. */
export function mergeNarrow(row: RowSlice, pixel: number, only?: Uint8Array): RowSlice {
  const { set, first, end } = row;
  const { start, dur } = set;
  // Longest event of each rectangle, and the extent, coverage and number of its members.
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
    const cover = (right - left) * coverage(set, i);
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
  if (taken === longest.length && taken === end - first) return row;
  const starts = Float64Array.from(from);
  const lengths = Float64Array.from(from, (left, i) => until[i] - left);
  const reach = new Float64Array(starts.length);
  let latest = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < reach.length; i++) {
    latest = Math.max(latest, until[i]);
    reach[i] = latest;
  }
  const { kind, variant } = set;
  const merged: EventColumns = {
    prefix: set.prefix,
    start: starts,
    dur: lengths,
    reach,
    kind: kind && Float64Array.from(longest, (event) => kind[event]),
    variant: variant && Uint8Array.from(longest, (event) => variant[event]),
    members: Float64Array.from(members),
    cover: Float64Array.from(busy, (cover, i) => Math.min(cover, lengths[i])),
    name: (column, i) => set.name(column, longest[i]),
    label: (i) => set.label(longest[i]),
  };
  return { set: merged, first: 0, end: starts.length };
}
