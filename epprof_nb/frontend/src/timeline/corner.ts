// Corner beside the ruler: fold button, help button, and the base time of the ruler.

import { h, signButton } from "../base/dom.ts";

export class Corner {
  readonly #base = h("span", {
    class: "ep-base",
    title: "Times on the ruler are relative to this time",
  });
  readonly #fold: HTMLElement;

  constructor(place: HTMLElement, act: { fold(): void; help(): void }) {
    this.#fold = signButton("", "Fold or unfold all lanes (C)", act.fold, { class: "ep-fold-all" });
    place.append(this.#fold, signButton("?", "Gestures and keys (?)", act.help), this.#base);
  }

  /** Show the base time of the ruler, and whether all lanes are folded. */
  show(base: string | null, folded: boolean): void {
    const text = base === null ? "" : base;
    if (this.#base.textContent !== text) this.#base.textContent = text;
    this.#fold.setAttribute("aria-pressed", String(folded));
  }
}
