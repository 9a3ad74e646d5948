// The viewer: summary, tabs and views, mounted into an element.

import { h } from "../base/dom.ts";
import type { Range } from "../base/time_scale.ts";
import { Breakdown } from "../breakdown/breakdown.ts";
import { queryForNode, queryForRow } from "../breakdown/row_selection.ts";
import type { DataSource } from "../data/data_source.ts";
import { type KindName, kindLabel } from "../data/kinds.ts";
import { Events, type LineTotals, type Overview } from "../data/model.ts";
import type { SelectionQuery } from "../data/queries.ts";
import type { Bundle } from "../data/wire_format.ts";
import type { Theme } from "../render/theme.ts";
import { sourceView } from "../source/source.ts";
import { Timeline } from "../timeline/timeline.ts";
import { header } from "./header.ts";
import { selectCounted } from "./summary_links.ts";
import { addControls } from "./timeline_controls.ts";

export type Tab = "timeline" | "breakdown" | "source";
export const TABS: Tab[] = ["timeline", "breakdown", "source"];

export interface ViewerOptions {
  /** Tab to open, for the breakdown optionally with its table: "breakdown:kernel". */
  tab: string;
  /** Maximum height of the timeline in pixels. */
  maxHeight: number;
  greedyWheel: boolean;
}

export interface Viewer {
  /** Release everything the viewer holds. */
  destroy(): void;
  setTheme(theme: Theme): void;
}

const LEGEND: KindName[] = ["kernel", "memcpy", "memset", "synchronization"];

let viewers = 0;

export function mount(
  root: HTMLElement,
  bundle: Bundle<Overview>,
  source: DataSource,
  options: ViewerOptions,
): Viewer {
  const overview = bundle.header;
  const timeline = new Timeline(overview, new Events(bundle), source, options);
  const controls = addControls(timeline);

  const go = (stretch: Range): void => {
    show("timeline");
    timeline.viewport.show(stretch);
  };
  const breakdown = new Breakdown(overview.breakdowns, source, {
    row(by, row) {
      show("timeline");
      const name = String(row.name ?? row.source ?? row.op_type ?? `by ${by}`);
      void timeline.selection.select(queryForRow(by, row), name);
    },
    node(name, level) {
      show("timeline");
      void timeline.selection.select(queryForNode(name, level), name);
    },
  });

  const id = `ep${++viewers}-`;
  const tabs = h("div", { class: "ep-tabs", role: "tablist", "aria-label": "Views" });
  const beside = h("div", { class: "ep-beside" }, controls.search, legend());
  const panels: Record<Tab, HTMLElement> = {
    timeline: h("section", {}, timeline.element, controls.panel),
    breakdown: h("section", {}, breakdown.element),
    source: h("section"),
  };
  for (const tab of TABS) {
    const button = h(
      "button",
      { type: "button", role: "tab", id: `${id}${tab}`, "data-tab": tab },
      tab,
    );
    button.addEventListener("click", () => show(tab));
    tabs.append(button);
    panels[tab].setAttribute("role", "tabpanel");
    panels[tab].setAttribute("aria-labelledby", `${id}${tab}`);
    panels[tab].classList.add("ep-tab-panel");
  }
  tabs.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const now = TABS.findIndex((tab) => !panels[tab].hidden);
    const next = TABS[(now + step + TABS.length) % TABS.length];
    show(next);
    tabs.querySelector<HTMLElement>(`[data-tab="${next}"]`)?.focus();
  });

  /** Highlight the events of a source line in the timeline. */
  function highlightLine(cell: string, { line }: LineTotals): void {
    show("timeline");
    const query: SelectionQuery = { what: "where", prefix: "op", equals: { cell, line } };
    void timeline.selection.select(query, `times line ${line} of ${cell}`);
  }

  async function openSource(): Promise<void> {
    try {
      panels.source.replaceChildren(sourceView(await source.sourceCode(), highlightLine));
    } catch (error) {
      panels.source.replaceChildren(h("p", { class: "ep-warn" }, `No source: ${error}`));
    }
  }

  function show(tab: Tab): void {
    for (const button of tabs.querySelectorAll<HTMLElement>("[role=tab]")) {
      const active = button.dataset.tab === tab;
      button.setAttribute("aria-selected", String(active));
      button.tabIndex = active ? 0 : -1;
    }
    for (const name of TABS) panels[name].hidden = name !== tab;
    beside.hidden = tab !== "timeline";
    if (tab === "breakdown") breakdown.open();
    if (tab === "source" && !panels.source.hasChildNodes()) void openSource();
  }

  const makeHeader = (): HTMLElement =>
    header(overview, go, (count) => {
      show("timeline");
      selectCounted(controls, timeline, count);
    });
  let head = makeHeader();

  /** Load the summary, which is computed after the first overview. */
  async function openHeadline(): Promise<void> {
    const wait = h("span", { class: "ep-faint" }, "computing the summary …");
    head.querySelector(".ep-summary")?.append(wait);
    try {
      Object.assign(overview, await source.headline());
      const old = head;
      head = makeHeader();
      old.replaceWith(head);
    } catch {
      wait.textContent = "no summary: Python did not answer";
    }
  }

  root.classList.add("ep-viewer");
  root.replaceChildren(
    head,
    h("div", { class: "ep-tab-bar" }, tabs, beside),
    ...TABS.map((tab) => panels[tab]),
  );
  const [tab, by] = options.tab.split(":");
  if (by) breakdown.openOn(by);
  show(TABS.find((name) => name === tab) ?? "timeline");
  if (source.live) void openHeadline();
  return {
    destroy() {
      timeline.destroy();
      breakdown.destroy();
      root.replaceChildren();
    },
    setTheme(theme) {
      root.dataset.theme = theme;
      timeline.setTheme(theme);
      breakdown.setTheme(theme);
    },
  };
}

function legend(): HTMLElement {
  const items = LEGEND.map((kind) =>
    h(
      "span",
      { class: "ep-key" },
      h("i", { class: `ep-swatch ep-swatch-${kind}` }),
      kindLabel(kind),
    ),
  );
  return h("div", { class: "ep-legend", "aria-label": "Colours" }, ...items);
}
