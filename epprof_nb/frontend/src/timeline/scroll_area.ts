// Elements of the scroll area: labels and canvas stay in place, and an empty element gives the
// scroll height.

import { h, on } from "../base/dom.ts";

export class ScrollArea {
  readonly canvas = h("canvas", { "aria-hidden": "true" });
  readonly #stage: HTMLElement;
  readonly #content: HTMLElement;
  /** Scrolling element; its scroll bar belongs to the lanes. */
  readonly scroller: HTMLElement;
  /** Scroll position in pixels. */
  scrolled = 0;

  constructor(private readonly labels: HTMLElement) {
    this.#stage = h("div", { class: "ep-stage" }, labels, this.canvas);
    this.#content = h("div", {}, this.#stage);
    this.scroller = h("div", { class: "ep-scroller" }, this.#content);
    // Cached, because reading it forces a layout.
    on(this.scroller, "scroll", () => {
      this.scrolled = this.scroller.scrollTop;
    });
  }

  /** Width left for the canvas beside the labels; not positive while hidden. */
  get width(): number {
    return this.#stage.clientWidth - this.labels.offsetWidth;
  }

  /** Set the height of the content, and of its visible part. */
  setHeight(all: number, height: number): void {
    this.#content.style.height = `${all}px`;
    this.scroller.style.height = `${height}px`;
    this.#stage.style.height = `${height}px`;
  }
}
