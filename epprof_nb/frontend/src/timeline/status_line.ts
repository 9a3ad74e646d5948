// A quiet line in the timeline's corner for what the reader should know and need not act on.

import { h } from "../base/dom.ts";

export class Status {
  readonly element = h("div", { class: "ep-status", role: "status", hidden: true });

  /** Shows a text; an empty one takes it away. */
  say(text: string): void {
    if (this.element.textContent === text) return;
    this.element.textContent = text;
    this.element.hidden = text === "";
  }
}
