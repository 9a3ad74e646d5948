// The breakdown: one table, by op, by kernel or by line; any column sorts it.

import { h } from "./dom.ts";
import { count, duration, percent, shorten, size } from "./format.ts";
import type { Cell, TableData } from "./model.ts";
import { order } from "./sort.ts";
import type { Supply } from "./supply.ts";

export type By = "op" | "kernel" | "line";

const LABELS: Record<string, string> = {
  name: "name",
  source: "line",
  op_type: "type",
  cell: "cell",
  line: "line",
  count: "count",
  share: "share of device time",
  device_ns: "device",
  self_device_ns: "device, self",
  kernels: "kernels",
  memcpys: "copies",
  memsets: "sets",
  bytes: "bytes",
  host_ns: "host",
  self_host_ns: "host, self",
  launch_delay_ns: "launch delay",
  mean_ns: "mean",
  min_ns: "min",
  p95_ns: "p95",
  max_ns: "max",
  grid: "grid",
  block: "block",
  ops: "ops",
};
const TEXTS = new Set(["name", "source", "op_type", "cell", "grid", "block"]);
/** What a reader looks for first; the other columns follow in the table's own order. */
const FIRST = "line name source op_type share device_ns self_device_ns count kernels".split(" ");
const ROWS = 400;

/** A cell's text: a number with its unit, by its column's name. */
export function show(column: string, value: Cell): string {
  // An empty cell is easier to pass over than a zero.
  if (value === null || value === 0) return "";
  if (typeof value !== "number") return String(value);
  if (column === "share") return percent(value);
  if (column.endsWith("_ns")) return duration(value);
  if (column.endsWith("bytes")) return size(value);
  return column === "line" ? String(value) : count(value);
}

/** The columns worth showing, the most looked for first: those that say nothing are left out. */
export function columnsOf(table: TableData): TableData["columns"] {
  const told = table.columns.filter(({ name, values }) =>
    name === "cell"
      ? new Set(values.filter((v) => v !== null)).size > 1
      : values.some((value) => value !== null && value !== 0 && value !== ""),
  );
  const rank = (name: string): number => {
    const at = FIRST.indexOf(name);
    return at < 0 ? FIRST.length : at;
  };
  return told
    .map((column, i) => ({ column, i }))
    .sort((a, b) => rank(a.column.name) - rank(b.column.name) || a.i - b.i)
    .map(({ column }) => column);
}

export class Breakdown {
  readonly element = h("div", { class: "ep-breakdown" });
  readonly #switch: HTMLElement;
  readonly #place = h("div", {
    class: "ep-table-place",
    tabindex: "0",
    role: "region",
    "aria-label": "Breakdown",
  });
  readonly #tables: Partial<Record<By, TableData>> = {};
  #by: By = "op";
  #sort: { column: string; descending: boolean } = { column: "device_ns", descending: true };

  constructor(
    private readonly supply: Supply,
    private readonly choose: (by: By, row: Record<string, Cell>) => void,
  ) {
    this.#switch = h("div", { class: "ep-switch", role: "group", "aria-label": "Break down by" });
    for (const by of ["op", "kernel", "line"] as const) {
      const button = h("button", { type: "button", "data-by": by }, `by ${by}`);
      button.addEventListener("click", () => this.show(by));
      this.#switch.append(button);
    }
    this.element.append(this.#switch, this.#place);
  }

  /** Shows the first table, when the breakdown is first looked at. */
  open(): void {
    if (!this.#tables[this.#by]) this.show(this.#by);
  }

  show(by: By): void {
    this.#by = by;
    this.#sort =
      by === "line"
        ? { column: "line", descending: false }
        : { column: "device_ns", descending: true };
    for (const button of this.#switch.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset.by === by));
    }
    void this.#load(by);
  }

  async #load(by: By): Promise<void> {
    try {
      this.#tables[by] ??= await this.supply.table(by);
      if (by === this.#by) this.#render();
    } catch (error) {
      this.#place.replaceChildren(h("p", { class: "ep-warn" }, `No breakdown: ${error}`));
    }
  }

  #render(): void {
    const table = this.#tables[this.#by];
    if (!table) return;
    if (table.rows === 0) {
      this.#place.replaceChildren(
        h("p", { class: "ep-empty" }, `Nothing to break down by ${this.#by}.`),
      );
      return;
    }
    const columns = columnsOf(table);
    const sorted = columns.find(({ name }) => name === this.#sort.column);
    const rows = sorted
      ? order(sorted.values, this.#sort.descending)
      : [...Array(table.rows).keys()];
    const head = h("tr", {}, ...columns.map(({ name }) => this.#header(name)));
    const largest = Math.max(
      ...columns.filter((c) => c.name === "share").flatMap((c) => c.values.map(Number)),
      0,
    );
    const body = rows.slice(0, ROWS).map((i) => {
      const row = h(
        "tr",
        { tabindex: "0" },
        ...columns.map(({ name, values }) => this.#cell(name, values[i], largest)),
      );
      const record = Object.fromEntries(table.columns.map(({ name, values }) => [name, values[i]]));
      row.addEventListener("click", () => this.choose(this.#by, record));
      row.addEventListener("keydown", (event) => {
        if (event.key === "Enter") this.choose(this.#by, record);
      });
      return row;
    });
    this.#place.replaceChildren(h("table", {}, h("thead", {}, head), h("tbody", {}, ...body)));
    const embedded = table.columns[0]?.values.length ?? 0;
    if (embedded < table.rows) {
      const text = `The first ${count(embedded)} of ${count(table.rows)} rows.`;
      this.#place.append(h("p", { class: "ep-note" }, text));
    }
  }

  #header(name: string): HTMLElement {
    const active = this.#sort.column === name;
    const arrow = active ? (this.#sort.descending ? " ↓" : " ↑") : "";
    const button = h(
      "button",
      { type: "button" },
      (LABELS[name] ?? name.replaceAll("_", " ")) + arrow,
    );
    button.addEventListener("click", () => {
      const descending = active ? !this.#sort.descending : !TEXTS.has(name) && name !== "line";
      this.#sort = { column: name, descending };
      this.#render();
      this.#place
        .querySelector<HTMLElement>(`th[data-column="${CSS.escape(name)}"] button`)
        ?.focus();
    });
    const sort = active ? (this.#sort.descending ? "descending" : "ascending") : "none";
    return h(
      "th",
      {
        scope: "col",
        "data-column": name,
        "aria-sort": sort,
        class: TEXTS.has(name) ? "ep-text" : "",
      },
      button,
    );
  }

  #cell(name: string, value: Cell, largest: number): HTMLElement {
    const text = show(name, value);
    if (name === "name" || name === "source") {
      return h("td", { class: "ep-text ep-name", title: text }, shorten(text, 48));
    }
    if (name === "share") {
      const bar = h("span", { class: "ep-bar", hidden: !value });
      bar.style.width = `${largest > 0 ? (Number(value) / largest) * 100 : 0}%`;
      return h(
        "td",
        { class: "ep-share" },
        h("span", { class: "ep-track" }, bar),
        h("span", {}, text),
      );
    }
    return h("td", { class: TEXTS.has(name) ? "ep-text ep-faint" : "" }, text);
  }
}
