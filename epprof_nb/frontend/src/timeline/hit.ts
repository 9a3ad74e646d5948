// Hit test: the event under the pointer.

import { type Range, toTime } from "../base/time_scale.ts";
import type { Hit, LaneSlice } from "../data/events.ts";
import { visibleEvents } from "../data/visible_events.ts";

/**
 * Distance in pixels at which an event still counts as hit, so that one-pixel events are reachable.
 */
const SLACK = 3;

/** Find the shortest event under `x`, else the nearest one within a few pixels. */
export function hit(slices: LaneSlice[], view: Range, width: number, x: number): Hit | null {
  const time = toTime(x, view, width);
  const slack = toTime(x + SLACK, view, width) - time;
  let best: Hit | null = null;
  let bestDistance = Number.POSITIVE_INFINITY;
  let bestLength = Number.POSITIVE_INFINITY;
  for (const slice of slices) {
    const { set } = slice;
    const [first, end] = visibleEvents(slice, { start: time - slack, end: time + slack });
    for (let i = first; i < end; i++) {
      const distance = Math.max(set.start[i] - time, time - set.start[i] - set.dur[i], 0);
      if (distance > slack || distance > bestDistance) continue;
      if (distance < bestDistance || set.dur[i] < bestLength) {
        best = { set, event: i };
        bestDistance = distance;
        bestLength = set.dur[i];
      }
    }
  }
  return best;
}
