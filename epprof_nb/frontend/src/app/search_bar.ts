// Search by regular expression over the names of ops, API calls and activities.

import { h } from "../base/dom.ts";
import { position } from "../base/format.ts";
import type { DataSource } from "../data/data_source.ts";
import type { SelectionQuery } from "../data/queries.ts";
import type { Chosen } from "../selection/controller.ts";

const PAUSE_MS = 140;

export class SearchBar {
  readonly element = h("div", { class: "ep-search", role: "search", hidden: true });
  readonly #field = h("input", {
    type: "text",
    placeholder: "Search names",
    "aria-label": "Search names by regular expression",
    title: "Regular expression; capitals matter where there are any",
    spellcheck: "false",
    autocomplete: "off",
  });
  readonly #told = h("span", { class: "ep-search-told", "aria-live": "polite" });
  #timer = 0;
  #asked = "";

  constructor(
    private readonly chosen: Chosen,
    private readonly source: DataSource,
    /** The time from which on the first match is looked for. */
    private readonly from: () => number,
    private readonly left: () => void,
  ) {
    const button = (sign: string, label: string, run: () => void): HTMLElement => {
      const one = h("button", { type: "button", "aria-label": label, title: label }, sign);
      one.addEventListener("click", run);
      return one;
    };
    this.element.append(
      this.#field,
      this.#told,
      button("‹", "Previous match (Shift+Enter)", () => void this.#walk(-1)),
      button("›", "Next match (Enter)", () => void this.#walk(1)),
      button("×", "Close the search (Escape)", () => this.close()),
    );
    this.#field.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => void this.#look(), PAUSE_MS) as unknown as number;
    });
    this.element.addEventListener("keydown", (event) => {
      // The timeline's own keys are letters to be typed here.
      event.stopPropagation();
      if (event.key === "Escape") this.close();
      else if (event.key === "Enter" && event.target === this.#field) {
        void this.#walk(event.shiftKey ? -1 : 1);
      } else return;
      event.preventDefault();
    });
  }

  open(): void {
    this.element.hidden = false;
    this.#field.focus();
    this.#field.select();
    void this.#look();
  }

  close(): void {
    this.element.hidden = true;
    clearTimeout(this.#timer);
    this.#asked = "";
    if (this.chosen.query?.what === "search") this.chosen.clear();
    this.left();
  }

  /** Lights what matches now; says quietly what is wrong with a pattern. */
  async #look(): Promise<boolean> {
    clearTimeout(this.#timer);
    const pattern = this.#field.value;
    if (pattern === this.#asked && this.chosen.query?.what === "search") return true;
    this.#asked = pattern;
    this.#tell("");
    if (!pattern) {
      if (this.chosen.query?.what === "search") this.chosen.clear();
      return false;
    }
    const query: SelectionQuery = { what: "search", pattern };
    try {
      const step = await this.source.seek(query, {});
      if (this.#asked !== pattern) return false;
      this.#tell(step.count ? `${position(null, step.count, step.about)} found` : "none");
      if (step.count) await this.chosen.want(query, "matches", false);
      else if (this.chosen.query?.what === "search") this.chosen.clear();
      return step.count > 0;
    } catch (error) {
      if (this.#asked === pattern) this.#tell(error instanceof Error ? error.message : "?", true);
      return false;
    }
  }

  async #walk(by: 1 | -1): Promise<void> {
    if (!(await this.#look())) return;
    const step = await this.chosen.walk(by, this.from());
    if (step?.event) this.#tell(position(step.number, step.count, step.about));
  }

  #tell(text: string, wrong = false): void {
    this.#told.textContent = text;
    this.#told.classList.toggle("ep-warn", wrong);
    this.#field.setAttribute("aria-invalid", String(wrong));
  }
}
