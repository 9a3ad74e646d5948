// The elements that the timeline is made of: labels and canvas stay, what scrolls is their height.

import { h } from "../base/dom.ts";

export class Stage {
  readonly canvas = h("canvas", { "aria-hidden": "true" });
  readonly #stage: HTMLElement;
  readonly #content: HTMLElement;
  /** What scrolls; its scroll bar is the lanes'. */
  readonly scroller: HTMLElement;
  /** How far it has scrolled, pixels. */
  scrolled = 0;

  constructor(private readonly labels: HTMLElement) {
    this.#stage = h("div", { class: "ep-stage" }, labels, this.canvas);
    this.#content = h("div", { class: "ep-content" }, this.#stage);
    this.scroller = h("div", { class: "ep-scroller" }, this.#content);
    // Noted rather than read when needed: reading makes the browser lay out what has changed.
    this.scroller.addEventListener("scroll", () => {
      this.scrolled = this.scroller.scrollTop;
    });
  }

  /** Pixels left for the canvas beside the labels; none while nothing is shown. */
  get width(): number {
    return this.#stage.clientWidth - this.labels.offsetWidth;
  }

  /** `all` pixels of content, of which `height` are in view. */
  setHeight(all: number, height: number): void {
    this.#content.style.height = `${all}px`;
    this.scroller.style.height = `${height}px`;
    this.#stage.style.height = `${height}px`;
  }
}
