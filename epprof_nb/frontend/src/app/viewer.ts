// The viewer: headline, tab bar and tabs, mounted into an element.

import { h, on } from "../base/dom.ts";
import type { DataSource } from "../data/data_source.ts";
import { Events } from "../data/events.ts";
import type { SelectionQuery } from "../data/selection_queries.ts";
import type { Bundle } from "../data/wire_format.ts";
import type { ProfileHeader } from "../data/wire_types.ts";
import type { Theme } from "../render/palettes.ts";
import { Timeline } from "../timeline/timeline.ts";
import { headerBlock } from "./header.ts";
import { selectCounted } from "./headline_links.ts";
import { type Link, linkView } from "./linked_views.ts";
import { TABS } from "./tabs.ts";
import { addControls } from "./timeline_controls.ts";

interface ViewerOptions {
  /** Tab to open, for the breakdown optionally with its table: "breakdown:kernel". */
  tab: string;
  /** Maximum height of the timeline in pixels. */
  maxHeight: number;
  greedyWheel: boolean;
  /** Whether the viewer has a page of its own. */
  roomy: boolean;
  /** Views to zoom and move together with. */
  link?: Link | null;
}

interface Viewer {
  /** Release everything the viewer holds. */
  destroy(): void;
  setTheme(theme: Theme): void;
}

const TIMELINE = TABS[0].id;

let viewers = 0;

export function mount(
  root: HTMLElement,
  bundle: Bundle<ProfileHeader>,
  source: DataSource,
  options: ViewerOptions,
): Viewer {
  const header = bundle.header;
  const timeline = new Timeline(header, new Events(bundle), source, options);
  const line = (cell: string, at: number): void => show("source", `${at}:${cell}`);
  const controls = addControls(timeline, options.roomy, line);
  const context = {
    header,
    source,
    timeline,
    controls,
    select(query: SelectionQuery, label: string): void {
      show(TIMELINE);
      void timeline.selection.select(query, label);
    },
    line,
  };
  const prefix = `ep${++viewers}-`;
  const bar = h("div", { class: "ep-tabs", role: "tablist", "aria-label": "Views" });
  const offered = TABS.filter((tab) => tab.offered?.(header) ?? true);
  const tabs = offered.map(({ id, title, mount }) => {
    const button = h(
      "button",
      { type: "button", role: "tab", id: `${prefix}${id}`, "data-tab": id },
      title,
    );
    on(button, "click", () => show(id));
    bar.append(button);
    const view = mount(context);
    view.element.setAttribute("role", "tabpanel");
    view.element.setAttribute("aria-labelledby", button.id);
    return { id, button, view };
  });
  on(bar, "keydown", (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const current = tabs.findIndex(({ view }) => !view.element.hidden);
    const next = tabs[(current + step + tabs.length) % tabs.length];
    show(next.id);
    next.button.focus();
  });

  function show(tab: string, detail?: string): void {
    for (const { id, button, view } of tabs) {
      const active = id === tab;
      button.setAttribute("aria-selected", String(active));
      button.tabIndex = active ? 0 : -1;
      view.element.hidden = !active;
      if (view.beside) view.beside.hidden = !active;
      if (active) view.open?.(detail);
    }
  }

  const makeHeader = (): HTMLElement =>
    headerBlock(
      header,
      (range) => {
        show(TIMELINE);
        timeline.viewport.show(range);
      },
      (count) => {
        show(TIMELINE);
        selectCounted(controls, timeline, count);
      },
    );
  let head = makeHeader();

  /** Load the headline, which is computed after the first picture. */
  async function loadHeadline(): Promise<void> {
    const wait = h("span", { class: "ep-faint" }, "computing the headline …");
    head.querySelector(".ep-headline")?.append(wait);
    try {
      Object.assign(header, await source.headline());
      const old = head;
      head = makeHeader();
      old.replaceWith(head);
    } catch {
      wait.textContent = "no headline: Python did not answer";
    }
  }

  root.classList.add("ep-viewer", "ep");
  if (options.roomy) root.style.setProperty("--room", `${options.maxHeight}px`);
  root.replaceChildren(
    head,
    h("div", { class: "ep-tab-bar" }, bar, ...tabs.flatMap(({ view }) => view.beside ?? [])),
    ...tabs.map(({ view }) => view.element),
    h("footer", { class: "ep-made-on" }, header.made_on),
  );
  const [tab, detail] = options.tab.split(":");
  show(offered.some(({ id }) => id === tab) ? tab : TIMELINE, detail);
  if (source.live) void loadHeadline();
  const unlink = options.link && linkView(options.link, timeline.viewport);
  return {
    destroy() {
      unlink?.();
      for (const { view } of tabs) view.destroy?.();
      root.replaceChildren();
    },
    setTheme(theme) {
      root.dataset.theme = theme;
      for (const { view } of tabs) view.setTheme?.(theme);
    },
  };
}
