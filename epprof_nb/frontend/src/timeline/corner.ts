// The corner beside the ruler: folding all lanes, the help, and the time the ruler counts from.

import { h } from "../base/dom.ts";

export class Corner {
  readonly #base = h("span", { class: "ep-base", title: "The ruler counts from this time" });
  readonly #fold = button("ep-fold-all", "Fold all lanes, or unfold them (C)");
  readonly #help = button("ep-help-open", "Gestures and keys (?)", "?");

  constructor(place: HTMLElement, act: { fold(): void; help(): void }) {
    this.#fold.addEventListener("click", act.fold);
    this.#help.addEventListener("click", act.help);
    place.append(this.#fold, this.#help, this.#base);
  }

  /** Tells the base of the ruler's labels, and whether all lanes are folded. */
  show(base: string | null, folded: boolean): void {
    const text = base === null ? "" : base;
    if (this.#base.textContent !== text) this.#base.textContent = text;
    this.#fold.setAttribute("aria-pressed", String(folded));
  }
}

function button(name: string, title: string, text = ""): HTMLButtonElement {
  return h("button", { type: "button", class: name, title, "aria-label": title }, text);
}
