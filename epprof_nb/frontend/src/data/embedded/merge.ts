// Merges the events of a window by time bin, as Python's views/timeline/merge.py does for a live view.

import type { Range } from "../../base/time_scale.ts";
import type { EventsHeader, Prefix } from "../wire_types.ts";
import { type Chosen, floats, type Gathered } from "./gathered.ts";

/**
 * Merge the events of each row that start in one bin into a rectangle. Events at least as long as a
 * bin keep a rectangle of their own.
 */
export function mergeIntoBins(
  gathered: Gathered,
  prefix: Prefix,
  { positions }: Chosen,
  slices: EventsHeader["slices"][Prefix],
  view: Range,
  bins: number,
): Chosen {
  const start = floats(gathered.column(`${prefix}.start`));
  const dur = floats(gathered.column(`${prefix}.dur`));
  const width = (view.end - view.start) / bins;
  const rects: {
    at: number[];
    start: number[];
    dur: number[];
    members: number[];
    cover: number[];
  } = { at: [], start: [], dur: [], members: [], cover: [] };
  for (const [, , first, end] of slices) {
    const separate = end - first <= 2 * bins;
    let bin = Number.NaN;
    let reach = Number.NEGATIVE_INFINITY;
    let longest = -1;
    for (let i = first; i < end; i++) {
      const until = start[i] + dur[i];
      const covered = Math.max(until - Math.max(start[i], reach), 0);
      reach = Math.max(reach, until);
      const long = separate || dur[i] >= width;
      const at = Math.floor((start[i] - view.start) / width);
      const last = rects.at.length - 1;
      if (!long && at === bin) {
        rects.members[last]++;
        rects.cover[last] += covered;
        rects.dur[last] = Math.max(rects.dur[last], until - rects.start[last]);
        if (dur[i] > longest) {
          longest = dur[i];
          rects.at[last] = positions[i];
        }
        continue;
      }
      rects.at.push(positions[i]);
      rects.start.push(start[i]);
      rects.dur.push(dur[i]);
      rects.members.push(1);
      rects.cover.push(covered);
      longest = dur[i];
      bin = long ? Number.NaN : at;
    }
  }
  return {
    positions: Float64Array.from(rects.at),
    merged: {
      start: Float64Array.from(rects.start),
      dur: Float64Array.from(rects.dur),
      members: Float64Array.from(rects.members),
      cover: Float64Array.from(rects.cover),
    },
  };
}
