// What happened in the marked span: numbers, and what took the device's time.

import { h } from "../base/dom.ts";
import { count, duration, moment, percent, shorten, size } from "../base/format.ts";
import type { Range } from "../base/time_scale.ts";
import type { DataSource } from "../data/data_source.ts";
import type { RangeBreakdown, RankedTotals } from "../data/queries.ts";

const ROWS = 6;

export interface SpanActions {
  zoom(span: Range): void;
  clear(): void;
  /** Lights what a row of the tables counts. */
  light(by: "op" | "name", name: string): void;
}

export class SpanPanel {
  readonly element = h("aside", {
    class: "ep-span",
    "aria-label": "The marked span",
    hidden: true,
  });
  readonly #head = h("div", { class: "ep-span-head" });
  /** What is known of the span before, until there is more to tell of this one. */
  readonly #body = h("div", { class: "ep-span-body" });
  #span: Range | null = null;
  #asked = false;

  constructor(
    private readonly source: DataSource,
    private readonly word: string,
    private readonly actions: SpanActions,
  ) {
    this.element.append(this.#head, this.#body);
  }

  /** Shows the breakdown of a span; while answers are awaited only the latest span counts. */
  async show(span: Range | null): Promise<void> {
    this.#span = span;
    this.element.hidden = span === null;
    if (!span) {
      this.#body.replaceChildren();
      return;
    }
    this.#name(span);
    this.element.ariaBusy = "true";
    if (this.#asked) return;
    this.#asked = true;
    try {
      const told = await this.source.rangeBreakdown(span);
      if (this.#span) this.#fill(told);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      this.#body.replaceChildren(h("p", { class: "ep-warn" }, text));
    } finally {
      this.#asked = false;
    }
    if (this.#span && this.#span !== span) await this.show(this.#span);
    else this.element.ariaBusy = "false";
  }

  /** Says which span it is: that needs no answer. */
  #name(span: Range): void {
    const button = (text: string, run: () => void): HTMLElement => {
      const one = h("button", { type: "button", class: "ep-link" }, text);
      one.addEventListener("click", run);
      return one;
    };
    const [start, end] = [Math.round(span.start), Math.round(span.end)];
    this.#head.replaceChildren(
      h("strong", {}, duration(end - start)),
      h("span", { class: "ep-faint" }, `from ${moment(start)} to ${moment(end)}`),
      button("zoom in", () => this.actions.zoom(span)),
      button("clear", () => this.actions.clear()),
    );
  }

  #fill(told: RangeBreakdown): void {
    const length = Math.max(told.end - told.start, 1);
    const numbers = h("dl", { class: "ep-span-numbers" });
    const add = (label: string, value: string): void =>
      numbers.append(h("div", {}, h("dt", {}, label), h("dd", {}, value)));
    for (const { device, busy } of told.devices) {
      const name = told.devices.length > 1 ? `${this.word} ${device}` : this.word;
      add(`${name} busy`, `${percent(busy / length)} (${duration(busy)})`);
      add("idle", duration(length - busy));
    }
    if (told.kernels) add("kernels", count(told.kernels));
    if (told.copies) add("copies", `${count(told.copies)} (${size(told.bytes)})`);
    if (told.sets) add("sets", count(told.sets));
    this.#body.replaceChildren(numbers);
    if (told.device_ns > 0) {
      this.#body.append(
        h(
          "div",
          { class: "ep-span-tables" },
          this.#table("by op", "op", told.ops, told.device_ns),
          this.#table("by kernel and copy", "name", told.names, told.device_ns),
        ),
      );
    } else this.#body.append(h("p", { class: "ep-empty" }, "The device did nothing here."));
    if (told.approximate) {
      const text =
        "About: some rectangles of this page stand for several events. Times are clipped to the span.";
      this.#body.append(h("p", { class: "ep-note" }, text));
    }
  }

  #table(
    title: string,
    by: "op" | "name",
    { rows, total }: RankedTotals,
    whole: number,
  ): HTMLElement {
    const largest = Math.max(...rows.map(([, , ns]) => ns), 1);
    const body = rows.slice(0, ROWS).map(([name, times, ns]) => {
      const bar = h("span", { class: "ep-bar" });
      bar.style.width = `${(ns / largest) * 100}%`;
      const row = h(
        "tr",
        { tabindex: "0" },
        h("td", { class: "ep-text ep-name", title: name }, shorten(name, 48)),
        h("td", { class: "ep-share" }, h("span", { class: "ep-track" }, bar)),
        h("td", {}, percent(ns / whole)),
        h("td", {}, duration(ns)),
        h("td", { class: "ep-faint" }, `${count(times)} ×`),
      );
      const light = (): void => this.actions.light(by, name);
      row.addEventListener("click", light);
      row.addEventListener("keydown", (event) => {
        if (event.key === "Enter") light();
      });
      return row;
    });
    const more = total > ROWS ? ` (first ${ROWS} of ${count(total)})` : "";
    return h("table", {}, h("caption", {}, `${title}${more}`), h("tbody", {}, ...body));
  }
}
