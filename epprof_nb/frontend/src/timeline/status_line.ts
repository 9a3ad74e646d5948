// Status line in the corner of the timeline, for information that needs no action.

import { h } from "../base/dom.ts";

export class StatusLine {
  readonly element = h("div", { class: "ep-status", role: "status", hidden: true });

  /** Show a text; an empty one hides the line. */
  show(text: string): void {
    if (this.element.textContent === text) return;
    this.element.textContent = text;
    this.element.hidden = text === "";
  }
}
