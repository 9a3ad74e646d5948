// Breakdown or modules tab: tables and a tree, with one filter for both.

import { h, on } from "../base/dom.ts";
import type { DataSource } from "../data/data_source.ts";
import type { Cell } from "../data/model.ts";
import type { Theme } from "../render/theme.ts";
import { Icicle } from "./icicle.ts";
import { BREAKDOWN_NAMES, Tables } from "./tables.ts";
import { Tree, type TreeNode } from "./tree.ts";

const FILTER_MS = 120;

/** Actions that show events in the timeline. */
interface BreakdownActions {
  row(by: string, row: Record<string, Cell>): void;
  node(node: TreeNode): void;
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
  #icicle: Icicle | undefined;
  #theme: Theme = "light";
  #first: string;
  #shown = "";
  #typing = 0;

  /** `offered` are the tables, `tree` the key of the tree. */
  constructor(
    private readonly offered: string[],
    private readonly tree: string,
    private readonly source: DataSource,
    private readonly actions: BreakdownActions,
  ) {
    this.#first = offered[0] ?? tree;
    const say = (text: string): void => this.#status.replaceChildren(text);
    this.#tables = new Tables(source, (by, row) => actions.row(by, row), say);
    for (const by of [...offered, tree]) {
      const text = by === tree ? "tree" : `by ${BREAKDOWN_NAMES[by] ?? by}`;
      const button = h("button", { type: "button", "data-by": by }, text);
      on(button, "click", () => void this.show(by));
      this.#switch.append(button);
    }
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
      this.#tables.tools,
    );
    this.element = h("div", { class: "ep-breakdown" }, this.#switch, tools, this.#place);
  }

  setTheme(theme: Theme): void {
    this.#theme = theme;
    this.#icicle?.setTheme(theme);
  }

  /** Release everything that would outlive the element. */
  destroy(): void {
    clearTimeout(this.#typing);
    this.#icicle?.destroy();
  }

  /** Set what is shown when the tab is first opened; by default the first table. */
  openOn(by: string): void {
    if (by === this.tree || this.offered.includes(by)) this.#first = by;
  }

  open(): void {
    if (!this.#shown) void this.show(this.#first);
  }

  async show(by: string): Promise<void> {
    this.#shown = by;
    for (const button of this.#switch.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset.by === by));
    }
    this.#tables.tools.hidden = by === this.tree;
    if (by !== this.tree) {
      this.#place.replaceChildren(this.#tables.element);
      this.#tables.show(by);
      return;
    }
    try {
      const icicle = await this.#loadIcicle();
      if (this.#shown !== by) return;
      this.#place.replaceChildren(icicle.element);
      icicle.setTheme(this.#theme);
      icicle.search(this.#filter.value.trim());
    } catch (error) {
      this.#place.replaceChildren(h("p", { class: "ep-warn" }, `No tree: ${error}`));
    }
  }

  async #loadIcicle(): Promise<Icicle> {
    this.#icicle ??= new Icicle(
      new Tree(await this.source.tree(this.tree)),
      (node) => this.actions.node(node),
      (text) => this.#status.replaceChildren(text),
    );
    return this.#icicle;
  }

  #search(): void {
    const pattern = this.#filter.value.trim();
    this.#tables.filter(pattern);
    if (this.#shown === this.tree) this.#icicle?.search(pattern);
  }
}
