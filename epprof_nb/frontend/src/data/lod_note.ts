// Note on the level of detail, for views in which one rectangle stands for several events.

import { count } from "../base/format.ts";
import type { Events } from "./events.ts";

/** Number of events that rectangles stand for; empty if each stands for one. */
export function lodNote(events: Events, zooms: boolean): string {
  const merged = Object.entries(events.counts).filter(([, [sent, all]]) => sent < all);
  if (!merged.length) return "";
  const parts = merged.map(([what, [sent, all]]) => `${count(all)} ${what} as ${count(sent)}`);
  const more = zooms
    ? "zoom in to separate them."
    : "zooming in shows no more, so that the notebook stays small. For every event, run prof.timeline().widget(), or open a file of prof.to_html(path).";
  return `Neighbouring events thinner than a pixel are merged, not omitted: ${parts.join(", ")} rectangles; ${more} Totals count every event; estimated numbers say so.`;
}
