// The tabs of the viewer: one entry each.

import { h } from "../base/dom.ts";
import { Breakdown } from "../breakdown/breakdown.ts";
import { queryForNode } from "../breakdown/row_selection.ts";
import type { DataSource } from "../data/data_source.ts";
import type { SelectionQuery } from "../data/selection_queries.ts";
import type { ProfileHeader } from "../data/wire_types.ts";
import type { Theme } from "../render/palettes.ts";
import { showHottestLine, showLine, sourceView } from "../source/source.ts";
import type { Timeline } from "../timeline/timeline.ts";
import { fullScreen } from "./full_screen.ts";
import { legend } from "./legend.ts";
import { perfetto } from "./perfetto.ts";
import type { TimelineControls } from "./timeline_controls.ts";

/** Parts of the viewer that a tab can use. */
interface TabContext {
  header: ProfileHeader;
  source: DataSource;
  timeline: Timeline;
  controls: TimelineControls;
  /** Show the timeline and select events in it; `label` names them. */
  select(query: SelectionQuery, label: string): void;
  /** Show the source, and in it a line of a cell or file. */
  line(cell: string, line: number): void;
}

/** A mounted tab. */
interface TabView {
  element: HTMLElement;
  /** Element at the right end of the tab bar while the tab is open. */
  beside?: HTMLElement;
  /** Called whenever the tab is opened; `detail` is the part to open, if any. */
  open?(detail?: string): void;
  setTheme?(theme: Theme): void;
  destroy?(): void;
}

interface Tab {
  id: string;
  title: string;
  /** Whether a profile has the tab; every profile if undefined. */
  offered?(header: ProfileHeader): boolean;
  mount(context: TabContext): TabView;
}

export const TABS: Tab[] = [
  { id: "timeline", title: "timeline", mount: mountTimeline },
  { id: "breakdown", title: "breakdown", mount: (context) => mountBreakdown(context, false) },
  {
    id: "modules",
    title: "modules",
    offered: ({ breakdowns }) => breakdowns.includes("module"),
    mount: (context) => mountBreakdown(context, true),
  },
  { id: "source", title: "source", mount: mountSource },
];

function mountTimeline({ header, source, timeline, controls }: TabContext): TabView {
  return {
    element: h("section", {}, timeline.element, controls.panel),
    beside: h(
      "div",
      { class: "ep-beside" },
      ...controls.search,
      fullScreen(timeline),
      perfetto(source),
      legend(header.kinds_present, timeline.colouring, header.operator_word),
    ),
    setTheme: (theme) => timeline.setTheme(theme),
    destroy: () => timeline.destroy(),
  };
}

function mountBreakdown(context: TabContext, modules: boolean): TabView {
  const { header, source, select } = context;
  const offered = header.breakdowns.filter((by) => (by === "module") === modules);
  const stacks = header.has_stacks ? ["stack_tree"] : [];
  const breakdown = new Breakdown(
    offered,
    modules ? ["module_tree"] : ["tree", ...stacks],
    source,
    {
      select,
      node: (node) => select(queryForNode(node), node.name),
      line: context.line,
    },
  );
  return {
    element: h("section", {}, breakdown.element),
    open(by) {
      if (by) breakdown.openOn(by);
      breakdown.open();
    },
    setTheme: (theme) => breakdown.setTheme(theme),
    destroy: () => breakdown.destroy(),
  };
}

function mountSource({ source, select }: TabContext): TabView {
  const element = h("section");
  let view: HTMLElement | undefined;
  let wanted = "";
  const load = async (): Promise<void> => {
    try {
      const cells = await source.sourceCode();
      view = sourceView(cells, (cell, { line, ops, stacks }) =>
        select(
          stacks
            ? { what: "where", prefix: "act", equals: { stack_id: stacks } }
            : { what: "where", prefix: "op", equals: ops ? { name: ops } : { cell, line } },
          `times line ${line} of ${cell}`,
        ),
      );
      element.replaceChildren(view);
      if (!wanted) showHottestLine(view);
      else showLine(view, wanted);
    } catch (error) {
      element.replaceChildren(h("p", { class: "ep-warn" }, `No source: ${error}`));
    }
  };
  return {
    element,
    /** `detail` is the line to show, and behind it the cell or file. */
    open(detail) {
      wanted = detail ?? "";
      if (!element.hasChildNodes()) void load();
      else if (view && wanted) showLine(view, wanted);
    },
  };
}
