// Links from the numbers of the headline to the events they count.

import type { SelectionQuery } from "../data/selection_queries.ts";
import type { Count } from "../data/wire_types.ts";
import type { Timeline } from "../timeline/timeline.ts";
import type { TimelineControls } from "./timeline_controls.ts";

const NAMES = { kernel: "kernels", memcpy: "copies", memset: "memsets" };

/** Highlight the counted events; idle gaps are visited one at a time. */
export function selectCounted(
  { mark }: TimelineControls,
  timeline: Timeline,
  { what, text }: Count,
): void {
  if (what === "gaps") {
    const gap = nextGap(timeline.header.gaps, mark.range?.start ?? null);
    if (!gap) return;
    mark.set({ start: gap[0], end: gap[1] });
    timeline.viewport.show({ start: gap[0], end: gap[1] });
    return;
  }
  const stray = what === "stray";
  const query: SelectionQuery = {
    what: "where",
    prefix: "act",
    equals: stray ? { op_id: null } : { kind: what },
  };
  void timeline.selection.select(
    query,
    stray ? "activities without an op" : NAMES[what],
    true,
    text,
  );
}

/** First gap that starts after `after`; wraps around after the last one. */
export function nextGap(
  gaps: [start: number, end: number][],
  after: number | null,
): [start: number, end: number] | undefined {
  return gaps.find(([start]) => after === null || start > after) ?? gaps[0];
}
