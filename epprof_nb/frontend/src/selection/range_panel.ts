// Breakdown of the marked time range: totals, and the ops and kernels with the most device time.

import { h, on } from "../base/dom.ts";
import { count, duration, moment, percent, shorten, size } from "../base/format.ts";
import type { Range } from "../base/time_scale.ts";
import type { RangeBreakdown, RankedTotals } from "../data/by_range.ts";
import type { DataSource } from "../data/data_source.ts";
import type { DeviceLabels } from "../data/wire_types.ts";

const ROWS = 6;

interface RangeActions {
  zoom(range: Range): void;
  clear(): void;
  /** Highlight the events of a table row. */
  highlight(by: "op" | "name", name: string): void;
}

export class RangePanel {
  readonly element = h("aside", {
    class: "ep-range",
    "aria-label": "Marked time range",
    hidden: true,
  });
  readonly #head = h("div", { class: "ep-range-head" });
  /** Breakdown of the previous range until the new one is loaded. */
  readonly #body = h("div", { class: "ep-range-body" });
  #range: Range | null = null;
  #loading = false;

  constructor(
    private readonly source: DataSource,
    private readonly word: string,
    private readonly labels: DeviceLabels,
    private readonly actions: RangeActions,
    /** Range to show if none is marked. */
    private readonly whole: Range | null,
  ) {
    this.element.append(this.#head, this.#body);
  }

  /** Show the breakdown of a range. While a request is pending, only the latest range is kept. */
  async show(marked: Range | null): Promise<void> {
    const range = marked ?? this.whole;
    this.#range = range;
    this.element.hidden = range === null;
    if (!range) {
      this.#body.replaceChildren();
      return;
    }
    this.#showHead(range);
    this.element.ariaBusy = "true";
    if (this.#loading) return;
    this.#loading = true;
    try {
      const totals = await this.source.byRange(range);
      if (this.#range) this.#showBreakdown(totals);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      this.#body.replaceChildren(h("p", { class: "ep-warn" }, text));
    } finally {
      this.#loading = false;
    }
    if (this.#range && this.#range !== range) await this.show(this.#range);
    else this.element.ariaBusy = "false";
  }

  /** Show the bounds of the range, which need no request. */
  #showHead(range: Range): void {
    const button = (text: string, run: () => void): HTMLElement => {
      const one = h("button", { type: "button", class: "ep-link" }, text);
      on(one, "click", run);
      return one;
    };
    if (range === this.whole) {
      this.#head.replaceChildren(h("strong", {}, "Whole profile"));
      return;
    }
    const [start, end] = [Math.round(range.start), Math.round(range.end)];
    this.#head.replaceChildren(
      h("strong", {}, duration(end - start)),
      h("span", { class: "ep-faint" }, `from ${moment(start)} to ${moment(end)}`),
      button("zoom in", () => this.actions.zoom(range)),
      button("clear", () => this.actions.clear()),
    );
  }

  #showBreakdown(totals: RangeBreakdown): void {
    const length = Math.max(totals.end - totals.start, 1);
    const numbers = h("dl", { class: "ep-range-numbers" });
    const add = (label: string, value: string): void =>
      numbers.append(h("div", {}, h("dt", {}, label), h("dd", {}, value)));
    for (const { device, busy, unknown = 0 } of totals.devices) {
      const name =
        totals.devices.length > 1 ? (this.labels[device] ?? `device ${device}`) : this.word;
      const known = length - unknown;
      add(`${name} busy`, known > 0 ? `${percent(busy / known)} (${duration(busy)})` : "unknown");
      add("idle", duration(known - busy));
      if (unknown) add("not recorded", duration(unknown));
    }
    if (totals.kernels) add("kernels", count(totals.kernels));
    if (totals.copies) add("copies", `${count(totals.copies)} (${size(totals.bytes)})`);
    if (totals.sets) add("memsets", count(totals.sets));
    this.#body.replaceChildren(numbers);
    if (totals.device_ns > 0) {
      this.#body.append(
        h(
          "div",
          { class: "ep-range-tables" },
          this.#table("by op", "op", totals.ops, totals.device_ns),
          this.#table("by kernel and copy", "name", totals.names, totals.device_ns),
        ),
      );
    } else
      this.#body.append(h("p", { class: "ep-empty" }, "The device was idle in this time range."));
    if (totals.estimated) this.#body.append(h("p", { class: "ep-note" }, estimateNote(totals)));
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
        h("td", { class: "ep-faint" }, count(times)),
      );
      const highlight = (): void => this.actions.highlight(by, name);
      on(row, "click", highlight);
      on(row, "keydown", (event) => {
        if (event.key === "Enter") highlight();
      });
      return row;
    });
    const more = total > ROWS ? ` (first ${ROWS} of ${count(total)})` : "";
    // Not a column head, which would make the column as wide as the word.
    const unit = h("span", { class: "ep-faint" }, "activities");
    return h("table", {}, h("caption", {}, `${title}${more} `, unit), h("tbody", {}, ...body));
  }
}

/** Text that says which part of a breakdown is estimated, and why. */
function estimateNote({ start, end, estimated }: RangeBreakdown): string {
  const { exact, bin } = estimated ?? { exact: null, bin: null };
  if (bin === null) return "Estimated: this page merges neighbouring events.";
  const stored = `this page contains sums per ${duration(bin)}, not every event`;
  if (!exact) return `Estimated: ${stored}.`;
  const ends = [
    exact.start > start ? `the first ${duration(exact.start - start)}` : "",
    exact.end < end ? `the last ${duration(end - exact.end)}` : "",
  ].filter(Boolean);
  const [verb, rest] = ends.length > 1 ? ["are", "the time between"] : ["is", "the rest"];
  return `${ends.join(" and ")} ${verb} estimated, ${rest} is exact: ${stored}.`.replace(/^t/, "T");
}
