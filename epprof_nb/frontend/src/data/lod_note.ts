// What is said where one rectangle stands for several events.

import { count } from "../base/format.ts";
import type { Events } from "./model.ts";

/** How many events the rectangles stand for; empty where each is one event. */
export function shownNote(events: Events, live: boolean): string {
  const merged = Object.entries(events.counts).filter(([, [sent, all]]) => sent < all);
  if (!merged.length) return "";
  const parts = merged.map(([what, [sent, all]]) => `${count(all)} ${what} by ${count(sent)}`);
  const more = live
    ? "zooming in parts them"
    : "this page was made smaller to fit a notebook, and no nearer look is in it";
  return `Neighbours thinner than a pixel are drawn together, none is left out: ${parts.join(", ")} rectangles; ${more}. All numbers count everything.`;
}
