// Tooltip of an event in the timeline; `event_fields.ts` has its values.

import { h } from "../base/dom.ts";
import { count, duration, moment, shorten } from "../base/format.ts";
import type { Hit } from "../data/events.ts";
import { fieldsOf, memberCount, rangeOf, refOf } from "../data/selection_queries.ts";
import { groups } from "./event_fields.ts";

export const NO_NAME = "(no name)";
/** Columns of the tooltip. */
const TOOLTIP_COLUMNS = new Set(
  "dur start_ns device_ns launches bytes stream_id grid launched_at".split(" "),
);

/** Content of the tooltip. */
export function tooltip(at: Hit, fields = fieldsOf(at.set, at.event)): HTMLElement[] {
  const ref = refOf(at);
  const shown = groups(ref.prefix, fields, null)
    .flatMap((group) => group.fields)
    .filter(({ column }) => TOOLTIP_COLUMNS.has(column));
  const head = h("div", { class: "ep-tip-title" }, shorten(ref.name || NO_NAME, 240));
  const list = h(
    "dl",
    {},
    ...shown.map(({ label, value }) => h("div", {}, h("dt", {}, label), h("dd", {}, value))),
  );
  if (memberCount(at.set, at.event) === 1) return [head, list];
  return [h("p", { class: "ep-faint" }, `${membersText(at)}; the longest is`), head, list];
}

/** The events of a merged rectangle: their number and their time range. */
export function membersText(at: Hit, word = "events"): string {
  const { start, end } = rangeOf(refOf(at));
  const members = count(memberCount(at.set, at.event));
  return `${members} ${word} from ${moment(start)} to ${moment(end)}, spanning ${duration(end - start)}`;
}
