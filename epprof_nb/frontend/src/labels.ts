// The column of labels beside the lanes.

import { h } from "./dom.ts";
import type { PlacedLane } from "./lanes.ts";

export interface Heading {
  text: string;
  title: string;
  y: number;
  height: number;
}

export class Labels {
  readonly element = h("div", { class: "ep-labels" });
  readonly #lanes = h("div", { class: "ep-lane-labels" });

  constructor(private readonly fold: (lane: number) => void) {}

  /** Builds the labels: `headings` stand above the lanes and do not scroll. */
  build(headings: Heading[], placed: PlacedLane[], head: number): void {
    const above = headings.map(({ text, title, y, height }) => {
      const label = h("div", { class: "ep-label", title }, text);
      label.style.top = `${y}px`;
      label.style.height = `${height}px`;
      return label;
    });
    this.#lanes.replaceChildren(...placed.map((lane) => this.#lane(lane)));
    const clipped = h("div", { class: "ep-clip" }, this.#lanes);
    clipped.style.top = `${head}px`;
    this.element.replaceChildren(...above, clipped);
  }

  scroll(pixels: number): void {
    this.#lanes.style.transform = `translateY(${-pixels}px)`;
  }

  #lane({ lane, index, y, height, folded }: PlacedLane): HTMLElement {
    const label = h("div", { class: `ep-label ep-label-${lane.kind}`, title: lane.title });
    if (lane.kind === "api") {
      const button = h(
        "button",
        { type: "button", class: "ep-fold", "aria-expanded": String(!folded) },
        `${folded ? "▸" : "▾"} ${lane.label}`,
      );
      button.addEventListener("click", () => this.fold(index));
      label.append(button);
    } else label.append(h("span", {}, lane.label));
    label.style.top = `${y}px`;
    label.style.height = `${Math.max(height, 12)}px`;
    return label;
  }
}
