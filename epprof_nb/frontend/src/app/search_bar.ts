// Search bar: regular expressions over the names of ops, API calls and activities.

import { h, on, signButton } from "../base/dom.ts";
import { position } from "../base/format.ts";
import type { DataSource } from "../data/data_source.ts";
import type { SelectionQuery } from "../data/selection_queries.ts";
import type { SelectionController } from "../selection/controller.ts";

const PAUSE_MS = 140;

export class SearchBar {
  readonly element = h("div", { class: "ep-search", role: "search", hidden: true });
  /** Button that opens the bar, shown while it is closed. */
  readonly opener = h(
    "button",
    { type: "button", class: "ep-pill ep-search-open", title: "Search names (/)" },
    "search",
  );
  readonly #field = h("input", {
    type: "text",
    placeholder: "Search names",
    "aria-label": "Search names by regular expression",
    title: "Regular expression; case-sensitive if it contains a capital letter",
    spellcheck: "false",
    autocomplete: "off",
  });
  readonly #status = h("span", { class: "ep-search-status", "aria-live": "polite" });
  #timer = 0;
  #pattern = "";

  constructor(
    private readonly selection: SelectionController,
    private readonly source: DataSource,
    /** Time from which the first match is searched. */
    private readonly from: () => number,
    private readonly onClose: () => void,
  ) {
    this.element.append(
      this.#field,
      this.#status,
      signButton("‹", "Previous match (Shift+Enter)", () => void this.#seekBy(-1)),
      signButton("›", "Next match (Enter)", () => void this.#seekBy(1)),
      signButton("×", "Close the search (Escape)", () => this.close()),
    );
    on(this.opener, "click", () => this.open());
    on(this.#field, "input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => void this.#search(), PAUSE_MS) as unknown as number;
    });
    on(this.element, "keydown", (event) => {
      // Keys typed here are text, not shortcuts of the timeline.
      event.stopPropagation();
      if (event.key === "Escape") this.close();
      else if (event.key === "Enter" && event.target === this.#field) {
        void this.#seekBy(event.shiftKey ? -1 : 1);
      } else return;
      event.preventDefault();
    });
  }

  open(): void {
    this.element.hidden = false;
    this.opener.hidden = true;
    this.#field.focus();
    this.#field.select();
    void this.#search();
  }

  close(): void {
    this.element.hidden = true;
    this.opener.hidden = false;
    clearTimeout(this.#timer);
    this.#pattern = "";
    if (this.selection.query?.what === "search") this.selection.clear();
    this.onClose();
  }

  /** Highlight the matches of the pattern, or show why it is invalid. */
  async #search(): Promise<boolean> {
    clearTimeout(this.#timer);
    const pattern = this.#field.value;
    if (pattern === this.#pattern && this.selection.query?.what === "search") return true;
    this.#pattern = pattern;
    this.#showStatus("");
    if (!pattern) {
      if (this.selection.query?.what === "search") this.selection.clear();
      return false;
    }
    const query: SelectionQuery = { what: "search", pattern };
    try {
      const found = await this.source.seek(query, {});
      if (this.#pattern !== pattern) return false;
      this.#showStatus(found.count ? `${position(null, found.count, found.about)} found` : "none");
      if (found.count) await this.selection.select(query, "matches", false);
      else if (this.selection.query?.what === "search") this.selection.clear();
      return found.count > 0;
    } catch (error) {
      if (this.#pattern === pattern)
        this.#showStatus(error instanceof Error ? error.message : "?", true);
      return false;
    }
  }

  async #seekBy(by: 1 | -1): Promise<void> {
    if (!(await this.#search())) return;
    const found = await this.selection.seekBy(by, this.from());
    if (found?.event)
      this.#showStatus(position(found.number, found.count, found.about, found.drawn));
  }

  #showStatus(text: string, wrong = false): void {
    this.#status.textContent = text;
    this.#status.classList.toggle("ep-warn", wrong);
    this.#field.setAttribute("aria-invalid", String(wrong));
  }
}
