// Tables of the breakdown: by op, kernel, line and so on, with sorting, filtering and copying.

import { copyText } from "../base/clipboard.ts";
import { h, on } from "../base/dom.ts";
import { count, shorten } from "../base/format.ts";
import type { DataSource } from "../data/data_source.ts";
import type { SelectionQuery } from "../data/selection_queries.ts";
import type { Cell, TableData } from "../data/wire_types.ts";
import {
  type Column,
  fittingColumns,
  informativeColumns,
  label,
  nameColumn,
  nameLength,
} from "./column_specs.ts";
import { csv, markdown, python } from "./exported_rows.ts";
import { filterAndSort, type Sort } from "./filter.ts";
import { queryForRow } from "./row_selection.ts";
import { renderTable, widenNames } from "./table_view.ts";

export const BREAKDOWN_NAMES: Record<string, string> = { op_type: "op type", node: "ORT node" };

export class Tables {
  readonly element: HTMLElement;
  /** Buttons that choose columns and copy the table. */
  readonly tools: HTMLElement;
  readonly #place = h("div", {
    class: "ep-table-place",
    role: "region",
    "aria-label": "Breakdown",
  });
  readonly #picker = h("div", {
    class: "ep-picker",
    role: "group",
    "aria-label": "Columns",
    hidden: true,
  });
  readonly #tables = new Map<string, TableData>();
  readonly #pickedColumns = new Map<string, Set<string>>();
  #by = "";
  #pattern = "";
  #sort: Sort = { column: "", descending: true };
  #table: TableData | undefined;
  #shown: { columns: Column[]; rows: number[] } = { columns: [], rows: [] };
  #width = 0;
  #request = 0;

  constructor(
    private readonly source: DataSource,
    private readonly onSelect: (query: SelectionQuery, label: string) => void,
    private readonly onStatus: (text: string) => void,
  ) {
    this.tools = this.#makeTools();
    this.element = h("div", {}, this.#picker, this.#place);
    new ResizeObserver(() => {
      const width = this.#place.clientWidth;
      if (!width || Math.abs(width - this.#width) < 4) return;
      this.#width = width;
      this.#render();
    }).observe(this.#place);
  }

  show(by: string): void {
    this.#by = by;
    // Lines are in the order of the source, and streams in the order of their numbers.
    const inOrder = by === "line" || by === "stream";
    const longest = by === "function" ? "self_sampled_ns" : "device_ns";
    this.#sort = { column: inOrder ? "" : longest, descending: true };
    this.#openPicker(false);
    void this.#load();
  }

  /** Show only rows that match a text or regular expression. */
  filter(pattern: string): void {
    this.#pattern = pattern;
    if (this.#by) void this.#load();
  }

  #makeTools(): HTMLElement {
    const tool = (text: string, title: string, act: () => void): HTMLElement => {
      const button = h("button", { type: "button", class: "ep-tool", title }, text);
      on(button, "click", act);
      return button;
    };
    const pick = tool("columns", "Choose the columns", () =>
      this.#openPicker(this.#picker.hasAttribute("hidden")),
    );
    pick.dataset.tool = "columns";
    return h(
      "div",
      { class: "ep-table-tools" },
      pick,
      tool("copy CSV", "Copy the shown rows as CSV", () => void this.#copy("csv")),
      tool("copy Markdown", "Copy the shown rows as a Markdown table", () => void this.#copy("md")),
    );
  }

  async #load(): Promise<void> {
    const by = this.#by;
    const request = ++this.#request;
    try {
      let table = this.#tables.get(by);
      if (!table) {
        table = await this.source.table(by);
        this.#tables.set(by, table);
      }
      if (this.source.live && sentRows(table) < table.rows) {
        const pattern = this.#pattern;
        table = await this.source.table(by, { ...this.#sort, pattern, sort: this.#sort.column });
      }
      if (request !== this.#request) return;
      this.#table = table;
      this.#render();
    } catch (error) {
      this.#place.replaceChildren(h("p", { class: "ep-warn" }, `No breakdown: ${error}`));
    }
  }

  #render(): void {
    const table = this.#table;
    if (!table) return;
    if (table.rows === 0) {
      const text = `Nothing to break down by ${BREAKDOWN_NAMES[this.#by] ?? this.#by}.`;
      this.#place.replaceChildren(h("p", { class: "ep-empty" }, text));
      return;
    }
    const all = informativeColumns(table);
    const sorted = this.#effectiveSort(all);
    const pattern = this.#pattern;
    // Rows that Python sorted and filtered stay as they are.
    const { rows, note } =
      table.found === undefined
        ? filterAndSort(table, sorted, pattern)
        : { rows: [...Array(sentRows(table)).keys()], note: table.note ?? "" };
    const chosen = this.#pickedColumns.get(this.#by);
    const { columns, letters } = chosen
      ? {
          columns: all.filter(({ name }) => chosen.has(name)),
          letters: nameLength(this.#width * 0.4),
        }
      : fittingColumns(all, this.#by, rows, this.#width || 1000);
    this.#shown = { columns, rows };
    const titles = table.columns.find(({ name }) => name === "name")?.values;
    const content = { by: this.#by, columns, all, rows, sort: sorted, letters, titles };
    const shown = renderTable(content, {
      sort: (sort) => void this.#resort(sort),
      select: (row) => this.#select(table, row),
      code: (row) => void this.#code(this.#query(table, row)),
    });
    this.#place.replaceChildren(shown);
    widenNames(shown);
    this.#showStatus(table, rows.length, note);
  }

  /** Requested order, or by host time if the table has no device time. */
  #effectiveSort(all: Column[]): Sort {
    const known = all.some(({ name }) => name === this.#sort.column);
    if (known || this.#sort.column !== "device_ns") return this.#sort;
    return { column: "host_ns", descending: true };
  }

  async #resort(sort: Sort): Promise<void> {
    this.#sort = sort;
    await this.#load();
    this.#headerButton(sort.column)?.focus();
  }

  #showStatus(table: TableData, found: number, note: string): void {
    const pattern = this.#pattern;
    const sent = sentRows(table);
    let text = `${count(table.rows)} ${table.rows === 1 ? "row" : "rows"}`;
    if (pattern) text = `${count(table.found ?? found)} of ${text}`;
    if (table.found !== undefined) {
      if (sent < table.found) text += `, the first ${count(sent)} shown`;
    } else if (sent < table.rows) text += `, of which this page contains the first ${count(sent)}`;
    this.onStatus(note ? `${text} · ${note}` : text);
  }

  #headerButton(name: string): HTMLElement | null {
    return this.#place.querySelector(`th[data-column="${CSS.escape(name)}"] button`);
  }

  #record(table: TableData, row: number): Record<string, Cell> {
    return Object.fromEntries(table.columns.map(({ name, values }) => [name, values[row]]));
  }

  async #copy(as: "csv" | "md"): Promise<void> {
    const { columns, rows } = this.#shown;
    const text = as === "csv" ? csv(columns, rows) : markdown(columns, rows, this.#by);
    if (await copyText(text, this.element)) {
      this.onStatus(`Copied ${count(rows.length)} rows to the clipboard.`);
    }
  }

  /** Query for the events of a row; null for rows outside of modules. */
  #query(table: TableData, row: number): SelectionQuery | null {
    const given = table.selections?.[row];
    return given ? { what: "where", ...given } : queryForRow(this.#by, this.#record(table, row));
  }

  #select(table: TableData, row: number): void {
    const query = this.#query(table, row);
    const { short_name, name, path, source, op_type } = this.#record(table, row);
    const label = short_name ?? name ?? path ?? source ?? op_type;
    if (query) this.onSelect(query, String(label ?? `by ${this.#by}`));
  }

  async #code(query: SelectionQuery | null): Promise<void> {
    const text = python(query);
    if (!query) this.onStatus("Work outside of modules does not belong to an op.");
    else if (!text) this.onStatus("This name is too long to copy in full.");
    else if (await copyText(text, this.element))
      this.onStatus(`Copied to the clipboard: ${shorten(text, 90)}`);
  }

  /** Open or close the list of columns. */
  #openPicker(open: boolean): void {
    this.#picker.hidden = !open;
    this.element.querySelector("[data-tool=columns]")?.setAttribute("aria-expanded", String(open));
    const table = this.#table;
    if (!open || !table) return;
    const all = informativeColumns(table);
    const main = nameColumn(all);
    const boxes = all.map(({ name }) => {
      const box = h("input", { type: "checkbox", value: name, disabled: name === main });
      box.checked = this.#shown.columns.some((column) => column.name === name);
      on(box, "change", () => {
        const names = [...this.#picker.querySelectorAll<HTMLInputElement>("input:checked")];
        this.#pickedColumns.set(this.#by, new Set(names.map(({ value }) => value)));
        this.#render();
      });
      return h("label", {}, box, label(name, this.#by));
    });
    const auto = h("button", { type: "button", class: "ep-tool" }, "automatic");
    on(auto, "click", () => {
      this.#pickedColumns.delete(this.#by);
      this.#render();
      this.#openPicker(true);
    });
    this.#picker.replaceChildren(...boxes, auto);
  }
}

function sentRows(table: TableData): number {
  return table.columns[0]?.values.length ?? 0;
}
