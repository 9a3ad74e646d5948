// What is chosen and lit, and the panel that tells of it.

import { panel } from "./details.ts";
import { h } from "./dom.ts";
import type { Hit } from "./hit.ts";
import type { Events } from "./model.ts";
import type { Lit } from "./renderer.ts";
import { light, lightActivities, lightOps } from "./selection.ts";

const HINT =
  "Click an op to light what it launched. Scroll to zoom, drag to move (or W A S D); double-click shows all.";

export class Chosen {
  readonly panel = h("div", { class: "ep-panel", "aria-live": "polite" });
  #lit: Lit | null = null;
  #at: Hit | null = null;
  #events: Events;

  constructor(
    private readonly first: Events,
    private readonly more: boolean,
    private readonly changed: (at: Hit | null) => void,
  ) {
    this.#events = first;
    this.#hint();
  }

  get lit(): Lit | null {
    return this.#lit;
  }

  /** The event that was clicked last. */
  get at(): Hit | null {
    return this.#at;
  }

  /** Other events are drawn: what was lit among the old ones is gone. */
  use(events: Events): void {
    this.#events = events;
    this.#lit = null;
    this.#at = null;
    this.#hint();
  }

  select(at: Hit | null): void {
    this.#at = at;
    this.#lit = at ? light(this.#events, at) : null;
    if (at) {
      const op = this.#events.op;
      const choose = (event: number): void => this.select({ set: op, event });
      this.panel.replaceChildren(...panel(at, this.#events, choose));
    } else this.#hint();
    this.changed(at);
  }

  /** Lights all ops for which `wanted` holds, with what they launched. */
  ops(wanted: (op: number) => boolean): void {
    const { op } = this.#events;
    const found = Array.from({ length: op.length }, (_, i) => i).filter(wanted);
    this.#light(found.length ? lightOps(this.#events, found) : null);
  }

  /** Lights all activities for which `wanted` holds, with the ops above them. */
  activities(wanted: (activity: number) => boolean): void {
    this.#light(lightActivities(this.#events, wanted));
  }

  #light(lit: Lit | null): void {
    this.#lit = lit;
    this.#hint();
  }

  #hint(): void {
    const shown = Object.entries(this.#events.shown)
      .filter(([, [sent, all]]) => sent < all)
      .map(
        ([what, [sent, all]]) =>
          `${sent.toLocaleString("en")} of ${all.toLocaleString("en")} ${what}`,
      );
    this.panel.replaceChildren(h("p", { class: "ep-faint" }, HINT));
    if (shown.length) {
      const more = this.more ? "; zooming in loads the rest" : "";
      const text = `Drawn are ${shown.join(", ")}, the longest of each moment${more}. All numbers count everything.`;
      this.panel.append(h("p", { class: "ep-note" }, text));
    } else if (this.#events !== this.first) {
      this.panel.append(h("p", { class: "ep-note" }, "Drawn is all of this window."));
    }
  }
}
