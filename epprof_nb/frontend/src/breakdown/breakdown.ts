// Breakdown or modules tab: tables and a tree, with one filter for both.

import { h, on } from "../base/dom.ts";
import type { DataSource } from "../data/data_source.ts";
import type { SelectionQuery } from "../data/selection_queries.ts";
import type { Theme } from "../render/palettes.ts";
import { Icicle } from "./icicle.ts";
import type { NodeActions } from "./icicle_details.ts";
import { Tree } from "./icicle_tree.ts";
import { BREAKDOWN_NAMES, Tables } from "./tables.ts";

const FILTER_MS = 120;
const STACKS = "stack_tree";

interface BreakdownActions extends NodeActions {
  /** Select events in the timeline; `label` names them. */
  select(query: SelectionQuery, label: string): void;
}

export class Breakdown {
  readonly element: HTMLElement;
  readonly #switch = h("div", { class: "ep-switch", role: "group", "aria-label": "Break down by" });
  readonly #filter = h("input", {
    type: "search",
    placeholder: "filter: text or regular expression",
    "aria-label": "Filter by text or regular expression",
    spellcheck: "false",
    maxlength: "200",
  });
  readonly #status = h("span", { class: "ep-filter-status", role: "status" });
  readonly #place = h("div");
  readonly #tables: Tables;
  readonly #library = h(
    "button",
    { type: "button", class: "ep-tool", "aria-pressed": "false" },
    "library frames",
  );
  readonly #icicles = new Map<string, Icicle>();
  #theme: Theme = "light";
  #first: string;
  #shown = "";
  #typing = 0;

  /** `offered` are the tables, `trees` the keys of the trees. */
  constructor(
    private readonly offered: string[],
    private readonly trees: string[],
    private readonly source: DataSource,
    private readonly actions: BreakdownActions,
  ) {
    this.#first = offered[0] ?? trees[0];
    const say = (text: string): void => this.#status.replaceChildren(text);
    this.#tables = new Tables(source, actions.select, say);
    for (const by of [...offered, ...trees]) {
      const name = by === STACKS ? "stack" : (BREAKDOWN_NAMES[by] ?? by);
      const text = offered.includes(by) || by === STACKS ? `by ${name}` : "tree";
      const button = h("button", { type: "button", "data-by": by }, text);
      on(button, "click", () => void this.show(by));
      this.#switch.append(button);
    }
    on(this.#library, "click", () => {
      const pressed = this.#library.ariaPressed !== "true";
      this.#library.ariaPressed = String(pressed);
      void this.show(STACKS);
    });
    on(this.#filter, "input", () => {
      clearTimeout(this.#typing);
      this.#typing = window.setTimeout(() => this.#search(), FILTER_MS);
    });
    on(this.#filter, "keydown", (event) => event.stopPropagation());
    const tools = h(
      "div",
      { class: "ep-tools" },
      this.#filter,
      this.#status,
      h("span", { class: "ep-space" }),
      this.#library,
      this.#tables.tools,
    );
    this.element = h("div", { class: "ep-breakdown" }, this.#switch, tools, this.#place);
  }

  setTheme(theme: Theme): void {
    this.#theme = theme;
    for (const icicle of this.#icicles.values()) icicle.setTheme(theme);
  }

  /** Release everything that would outlive the element. */
  destroy(): void {
    clearTimeout(this.#typing);
    for (const icicle of this.#icicles.values()) icicle.destroy();
  }

  /** Set what is shown when the tab is first opened; by default the first table. */
  openOn(by: string): void {
    if (this.trees.includes(by) || this.offered.includes(by)) this.#first = by;
  }

  open(): void {
    if (!this.#shown) void this.show(this.#first);
  }

  async show(by: string): Promise<void> {
    this.#shown = by;
    for (const button of this.#switch.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset.by === by));
    }
    const isTree = this.trees.includes(by);
    this.#tables.tools.hidden = isTree;
    this.#library.hidden = by !== STACKS;
    if (!isTree) {
      this.#place.replaceChildren(this.#tables.element);
      this.#tables.show(by);
      return;
    }
    try {
      const key = this.#keyOf(by);
      const icicle = await this.#loadIcicle(key);
      if (this.#shown !== by || this.#keyOf(by) !== key) return;
      this.#place.replaceChildren(icicle.element);
      icicle.setTheme(this.#theme);
      icicle.search(this.#filter.value.trim());
    } catch (error) {
      this.#place.replaceChildren(h("p", { class: "ep-warn" }, `No tree: ${error}`));
    }
  }

  #keyOf(by: string): string {
    return by === STACKS && this.#library.ariaPressed === "true" ? `full_${by}` : by;
  }

  async #loadIcicle(key: string): Promise<Icicle> {
    const loaded = this.#icicles.get(key);
    if (loaded) return loaded;
    const icicle = new Icicle(new Tree(await this.source.tree(key)), this.actions, (text) =>
      this.#status.replaceChildren(text),
    );
    this.#icicles.set(key, icicle);
    return icicle;
  }

  #search(): void {
    const pattern = this.#filter.value.trim();
    this.#tables.filter(pattern);
    if (this.trees.includes(this.#shown))
      this.#icicles.get(this.#keyOf(this.#shown))?.search(pattern);
  }
}
