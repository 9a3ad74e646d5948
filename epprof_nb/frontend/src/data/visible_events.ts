// Lookup of the events that a time range shows.

import { firstAbove } from "../base/binary_search.ts";
import type { Range } from "../base/time_scale.ts";
import type { RowSlice } from "./events.ts";

/**
 * Find the events of a row slice that may touch the window, as [first, end).
 *
 * Events up to `pixel` ns before the window count, because thin events are widened up to a pixel.
 */
export function visibleEvents(
  slice: RowSlice,
  view: Range,
  pixel = 1,
): [first: number, end: number] {
  const { set } = slice;
  const first = firstAbove(set.reach, view.start - pixel, slice.first, slice.end);
  return [first, firstAbove(set.start, view.end, first, slice.end)];
}
