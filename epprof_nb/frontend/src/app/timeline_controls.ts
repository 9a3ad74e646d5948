// What links the timeline's parts: selection, flow lines, search and the marked span.

import { h } from "../base/dom.ts";
import type { SelectionQuery } from "../data/queries.ts";
import { SpanPanel } from "../selection/range_panel.ts";
import { SpanMark } from "../timeline/overlays/range_mark.ts";
import type { Timeline } from "../timeline/timeline.ts";
import { SearchBar } from "./search_bar.ts";

const GROUP = "Select";

export interface Linked {
  /** Details and the span's breakdown, to be placed below the timeline. */
  panel: HTMLElement;
  /** The search, closed until it is asked for; to be placed where it covers nothing. */
  search: HTMLElement;
  span: SpanMark;
}

/** Adds search and span selection to a timeline. */
export function link(timeline: Timeline): Linked {
  const { chosen, overview, source, viewport } = timeline;
  const span = new SpanMark(
    viewport.whole,
    () => timeline.geometry,
    (range) => {
      chosen.mark(range);
      void told.show(range);
      timeline.draw();
    },
  );
  const told = new SpanPanel(source, overview.summary.device_word, {
    zoom: (range) => viewport.show(range),
    clear: () => span.set(null),
    light: (by, name) => void chosen.want(wantedBy(by, name), name, false),
  });
  timeline.add(span);

  const search = new SearchBar(
    chosen,
    source,
    () => viewport.view.start,
    () => timeline.element.focus(),
  );
  timeline.keys.add(
    {
      keys: ["/", "ctrl+f"],
      help: "Search names by regular expression",
      group: GROUP,
      run: () => search.open(),
    },
    {
      keys: ["i"],
      help: "Start a span at the pointer",
      group: GROUP,
      run: () => span.edge("start"),
    },
    { keys: ["o"], help: "End the span at the pointer", group: GROUP, run: () => span.edge("end") },
    {
      keys: ["escape"],
      help: "Clear the selection, then the span",
      group: GROUP,
      run: () => {
        if (chosen.query) chosen.clear();
        else if (span.span) span.set(null);
        else return false;
        return true;
      },
    },
    {
      keys: ["]"],
      help: "Next of what is lit; of one event, what it launched",
      group: GROUP,
      run: () => chosen.go(1),
    },
    {
      keys: ["["],
      help: "Previous of what is lit; of one event, what launched it",
      group: GROUP,
      run: () => chosen.go(-1),
    },
  );

  source.onSelect((query) => {
    if (query) void chosen.want(query, "rows of a DataFrame");
    else chosen.clear();
  });
  const { given } = overview;
  if (given) void chosen.want({ what: "rows" }, rowsLabel(given.count, given.sent));
  const panel = h("div", { class: "ep-below" }, chosen.panel, told.element);
  return { panel, search: search.element, span };
}

function rowsLabel(count: number, sent: number): string {
  if (sent >= count) return "rows of a DataFrame";
  return `rows of a DataFrame, the longest of ${count.toLocaleString("en")}: more do not fit in this page`;
}

function wantedBy(by: "op" | "name", name: string): SelectionQuery {
  const missing = name === "(no op)" || name === "(no name)";
  if (by === "op") {
    return missing
      ? { what: "where", prefix: "act", equals: { op_id: null } }
      : { what: "where", prefix: "op", equals: { name } };
  }
  return { what: "where", prefix: "act", equals: { name: missing ? null : name } };
}
