// Flame graph of the difference between two sides of a comparison: width = new, colour = change.

import { h, on } from "../base/dom.ts";
import { count, duration } from "../base/format.ts";
import type { TreeData } from "../data/wire_types.ts";
import { changeColour, FIRST_CHANGE } from "../render/event_colours.ts";
import { palette, type Theme } from "../render/palettes.ts";
import { Icicle } from "./icicle.ts";
import { Tree } from "./icicle_tree.ts";

/** The trees: of the user's frames, and of all frames. */
export interface Difference {
  own: TreeData;
  full: TreeData;
  /** The change of the device time and of the wall time, which has idle time too. */
  change: string;
}

const TITLE = "Difference of device time by Python stack";
const ABOUT =
  "Width: device time of the new side, per repeat. Colour: its change from the old side. The tables say which changes may be noise.";
/** Names of the colours, from much less to much more. */
const NAMES = [
  "\u221250 % to removed",
  "\u221220 to \u221250 %",
  "\u22125 to \u221220 %",
  "less than 5 %",
  "+5 to +20 %",
  "+20 to +50 %",
  "+50 % to new",
];

function pressed(button: HTMLElement): boolean {
  return button.ariaPressed === "true";
}

export class DifferenceView {
  readonly element: HTMLElement;
  readonly #legend = h("div", { class: "ep-legend ep-changes" });
  readonly #hidden = h("span", { class: "ep-faint" });
  readonly #place = h("div");
  readonly #status = h("span", { class: "ep-filter-status", role: "status" });
  readonly #filter = h("input", {
    type: "search",
    placeholder: "filter: text or regular expression",
    "aria-label": "Filter by text or regular expression",
    spellcheck: "false",
    maxlength: "200",
  });
  readonly #library = this.#toggle("library frames", "Show frames of libraries, too");
  readonly #removed = this.#toggle(
    "removed stacks",
    "Show the work that the new side lacks, with its width on the old side",
  );
  readonly #icicles = new Map<string, Icicle>();
  #theme: Theme = "light";

  constructor(private readonly trees: Difference) {
    on(this.#filter, "input", () => this.#icicle().search(this.#filter.value.trim()));
    const tools = h(
      "div",
      { class: "ep-tools" },
      this.#filter,
      this.#status,
      h("span", { class: "ep-space" }),
      this.#removed,
      this.#library,
    );
    const about = h("p", {}, h("strong", {}, TITLE), " ", h("span", { class: "ep-faint" }, ABOUT));
    const change = h("p", {}, trees.change);
    this.element = h(
      "div",
      { class: "ep-difference" },
      about,
      change,
      this.#legend,
      tools,
      this.#place,
    );
    this.#show();
  }

  setTheme(theme: Theme): void {
    this.#theme = theme;
    this.#legend.replaceChildren(
      ...NAMES.map((name, step) => {
        const swatch = h("i", { class: "ep-swatch" });
        swatch.style.background = changeColour(palette(theme), FIRST_CHANGE + step);
        return h("span", { class: "ep-key" }, swatch, name);
      }),
      this.#hidden,
    );
    this.#icicle().setTheme(theme);
  }

  #toggle(text: string, title: string): HTMLElement {
    const button = h(
      "button",
      { type: "button", class: "ep-tool", "aria-pressed": "false", title },
      text,
    );
    on(button, "click", () => {
      button.ariaPressed = String(button.ariaPressed !== "true");
      this.#show();
    });
    return button;
  }

  #tree(): TreeData {
    return pressed(this.#library) ? this.trees.full : this.trees.own;
  }

  #icicle(): Icicle {
    const key = `${pressed(this.#library)} ${pressed(this.#removed)}`;
    let icicle = this.#icicles.get(key);
    if (!icicle) {
      const tree = new Tree(this.#tree());
      tree.withRemoved = pressed(this.#removed);
      icicle = new Icicle(tree, {}, (text) => this.#status.replaceChildren(text));
      this.#icicles.set(key, icicle);
    }
    return icicle;
  }

  #show(): void {
    const icicle = this.#icicle();
    const { removed = 0, removed_ns = 0 } = this.#tree();
    const stacks = `${count(removed)} ${removed === 1 ? "stack" : "stacks"} removed`;
    const state = pressed(this.#removed) ? "shown" : "hidden";
    this.#hidden.textContent = removed ? `${stacks} (${duration(removed_ns)}), ${state}` : "";
    this.#place.replaceChildren(icicle.element);
    icicle.setTheme(this.#theme);
    icicle.search(this.#filter.value.trim());
  }
}
