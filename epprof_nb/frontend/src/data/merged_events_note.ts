// Note on the level of detail, for views in which one rectangle stands for several events.

import { count } from "../base/format.ts";
import type { Events } from "./events.ts";

/** Note on the numbers of events and rectangles; empty if each rectangle stands for one event. */
export function mergedEventsNote(events: Events, zooms: boolean): string {
  const merged = Object.entries(events.counts).filter(([, [sent, all]]) => sent < all);
  if (!merged.length) return "";
  const parts = merged.map(([what, [sent, all]]) => `${count(all)} ${what} as ${count(sent)}`);
  const more = zooms
    ? "zoom in to separate them."
    : "the notebook stores no more. To see every event, run prof.timeline().widget(), or open the page that prof.to_html(path) writes.";
  return `Neighbouring events thinner than a pixel are merged: ${parts.join(", ")} rectangles; ${more} Totals count every event; estimated numbers say so.`;
}
