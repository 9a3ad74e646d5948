// Search, range selection and memory of the timeline, and the panels below it.

import { h } from "../base/dom.ts";
import { MemoryPanel } from "../breakdown/memory_panel.ts";
import type { SelectionQuery } from "../data/selection_queries.ts";
import { RangePanel } from "../selection/range_panel.ts";
import { MemoryMark } from "../timeline/overlays/memory_mark.ts";
import { RangeMark } from "../timeline/overlays/range_mark.ts";
import type { Timeline } from "../timeline/timeline.ts";
import { SearchBar } from "./search_bar.ts";
import { selectionKeys } from "./selection_keys.ts";

export interface TimelineControls {
  /** Event details and range breakdown, to be placed below the timeline. */
  panel: HTMLElement;
  /** Search bar, hidden until opened, and its button; to be placed where they cover nothing. */
  search: HTMLElement[];
  mark: RangeMark;
}

/**
 * Add search and range selection to a timeline. If there is room, as a live view has, the whole
 * profile is broken down below it while no range is marked.
 */
export function addControls(
  timeline: Timeline,
  roomy: boolean,
  showLine: (cell: string, line: number) => void,
): TimelineControls {
  const { selection, header, source, viewport } = timeline;
  const mark = new RangeMark(
    viewport.whole,
    () => timeline.geometry,
    (range) => {
      selection.setRange(range);
      void panel.show(range);
      timeline.draw();
    },
  );
  const panel = new RangePanel(
    source,
    header.headline.device_word,
    header.devices,
    {
      zoom: (range) => viewport.show(range),
      clear: () => mark.set(null),
      highlight: (by, name) => void selection.select(queryBy(by, name), name, false),
    },
    (roomy || source.live) && header.kinds_present.length ? viewport.whole : null,
  );
  void panel.show(null);
  timeline.add(mark);
  const memory = new MemoryMark(
    header.counters,
    () => timeline.geometry,
    (counter, range) => timeline.tracks.greatestAt(counter, range),
    (picked) => {
      void holders.show(picked);
      timeline.draw();
    },
  );
  const holders = new MemoryPanel(source, {
    peak: (counter) => memory.set(counter.peak ? { at: counter.peak[0], counter } : null),
    close: () => memory.set(null),
    line: showLine,
  });
  timeline.add(memory);

  const search = new SearchBar(
    selection,
    source,
    () => viewport.view.start,
    () => timeline.element.focus(),
  );
  timeline.shortcuts.add(...selectionKeys(timeline, search, mark, memory));

  source.onSelect((query) => {
    if (query) void selection.select(query, "rows of a DataFrame");
    else selection.clear();
  });
  const { given } = header;
  if (given) void selection.select({ what: "rows" }, rowsLabel(given.count, given.sent));
  const below = h("div", { class: "ep-below" }, holders.element, selection.panel, panel.element);
  return { panel: below, search: [search.opener, search.element], mark };
}

function rowsLabel(count: number, sent: number): string {
  if (sent >= count) return "rows of a DataFrame";
  return `rows of a DataFrame, the longest of ${count.toLocaleString("en")}; more do not fit in this page`;
}

function queryBy(by: "op" | "name", name: string): SelectionQuery {
  const missing = name === "(no op)" || name === "(no name)";
  if (by === "op") {
    return missing
      ? { what: "where", prefix: "act", equals: { op_id: null } }
      : { what: "where", prefix: "op", equals: { name } };
  }
  return { what: "where", prefix: "act", equals: { name: missing ? null : name } };
}
