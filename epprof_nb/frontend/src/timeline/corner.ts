// Corner beside the ruler: fold button, help button, and the base time of the ruler.

import { h, on } from "../base/dom.ts";

export class Corner {
  readonly #base = h("span", {
    class: "ep-base",
    title: "Times on the ruler are relative to this time",
  });
  readonly #fold = button("ep-fold-all", "Fold or unfold all lanes (C)");
  readonly #help = button("ep-help-open", "Gestures and keys (?)", "?");

  constructor(place: HTMLElement, act: { fold(): void; help(): void }) {
    on(this.#fold, "click", act.fold);
    on(this.#help, "click", act.help);
    place.append(this.#fold, this.#help, this.#base);
  }

  /** Show the base time of the ruler, and whether all lanes are folded. */
  show(base: string | null, folded: boolean): void {
    const text = base === null ? "" : base;
    if (this.#base.textContent !== text) this.#base.textContent = text;
    this.#fold.setAttribute("aria-pressed", String(folded));
  }
}

function button(name: string, title: string, text = ""): HTMLButtonElement {
  return h("button", { type: "button", class: name, title, "aria-label": title }, text);
}
