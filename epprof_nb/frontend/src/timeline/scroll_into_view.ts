// Scroll distance that brings an event into view.

import type { EventRef } from "../data/wire_types.ts";
import type { Geometry } from "./geometry.ts";
import { bandOf } from "./overlays/flows.ts";

/** Margin in pixels between the event and the edges. */
const MARGIN = 24;

export function scrollIntoView(ref: EventRef, geometry: Geometry): number {
  const lane = geometry.lanes.find(({ index }) => index === ref.lane);
  if (!lane) return 0;
  const y = bandOf(lane, ref.level).y + geometry.offset(lane);
  if (y < geometry.head + MARGIN) return y - geometry.head - MARGIN;
  return Math.max(y - geometry.height + MARGIN, 0);
}
