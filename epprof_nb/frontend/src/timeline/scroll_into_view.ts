// How far the lanes are to be scrolled for an event to come into sight.

import type { EventRef } from "../data/model.ts";
import type { Geometry } from "./geometry.ts";
import { bandOf } from "./overlays/flows.ts";

/** Pixels that an event stays away from the upper and lower edge. */
const MARGIN = 24;

export function toScroll(ref: EventRef, geometry: Geometry): number {
  const lane = geometry.lanes.find(({ index }) => index === ref.lane);
  if (!lane) return 0;
  const y = bandOf(lane, ref.level).y + geometry.offset(lane);
  if (y < geometry.head + MARGIN) return y - geometry.head - MARGIN;
  return Math.max(y - geometry.height + MARGIN, 0);
}
