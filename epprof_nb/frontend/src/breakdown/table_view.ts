// Rendering of a table: sortable headers, rows reachable by keyboard.

import { h, on } from "../base/dom.ts";
import { shorten } from "../base/format.ts";
import type { Cell } from "../data/wire_types.ts";
import {
  barColumn,
  type Column,
  formatCell,
  isText,
  label,
  nameColumn,
  title,
} from "./column_specs.ts";
import type { Sort } from "./filter.ts";

const NO_NAME = "(no name)";
const CODE = "Copy Python code that selects these rows (C)";

interface TableContent {
  by: string;
  /** Columns to show. */
  columns: Column[];
  /** All columns; the bars need some that may not be shown. */
  all: Column[];
  /** Positions of the rows to show, in order. */
  rows: number[];
  sort: Sort;
  /** Full names by row, where the table shows short ones. */
  titles: Cell[] | undefined;
  /** Number of characters of a name that fit. */
  letters: number;
}

interface TableActions {
  sort(sort: Sort): void;
  select(row: number): void;
  /** Copy code that selects the events of a row. */
  code(row: number): void;
}

export function renderTable(content: TableContent, act: TableActions): HTMLTableElement {
  const { columns, rows } = content;
  const head = h("tr", {}, ...columns.map((column) => header(column.name, content, act)));
  const bar = bars(content);
  const body = h(
    "tbody",
    {},
    ...rows.map((i, at) => {
      const cells = columns.map((column) => cell(column, i, content, bar));
      // Only one row is a tab stop; the arrow keys lead to the others.
      return h("tr", { tabindex: at === 0 ? "0" : "-1", "data-row": i }, ...cells);
    }),
  );
  const rowOf = (event: Event): HTMLElement | null =>
    event.target instanceof Element ? event.target.closest<HTMLElement>("tr[data-row]") : null;
  on(body, "click", (event) => {
    const row = rowOf(event);
    if (!row) return;
    const onCode = event.target instanceof Element && event.target.closest(".ep-row-code");
    if (onCode) act.code(Number(row.dataset.row));
    else act.select(Number(row.dataset.row));
  });
  on(body, "keydown", (event) => {
    const row = rowOf(event);
    if (!row) return;
    if (event.key === "Enter") act.select(Number(row.dataset.row));
    else if (event.key === "c" && !event.ctrlKey && !event.metaKey) {
      act.code(Number(row.dataset.row));
      event.stopPropagation();
    } else moveFocus(row, event);
  });
  return h("table", {}, h("thead", {}, head), body);
}

/** Widen elided names to the room the other columns leave. */
export function widenNames(table: HTMLTableElement): void {
  const names = [...table.querySelectorAll<HTMLElement>("td.ep-name > bdi")];
  const elided = names.filter((name) => name.textContent?.includes("…"));
  const cell = elided[0]?.parentElement;
  if (!cell) return;
  cell.style.width = "100%";
  const letter = elided[0].offsetWidth / (elided[0].textContent?.length ?? 1);
  const { paddingLeft, paddingRight } = getComputedStyle(cell);
  const room = cell.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight);
  if (!(letter > 0)) return;
  for (const name of elided) {
    const whole = name.parentElement?.dataset.text ?? "";
    name.textContent = shorten(whole, Math.floor(room / letter));
  }
}

function moveFocus(row: HTMLElement, event: KeyboardEvent): void {
  const to = {
    ArrowDown: row.nextElementSibling,
    ArrowUp: row.previousElementSibling,
    Home: row.parentElement?.firstElementChild,
    End: row.parentElement?.lastElementChild,
  }[event.key];
  if (!(to instanceof HTMLElement)) return;
  row.tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
  event.preventDefault();
}

function header(name: string, { sort, by }: TableContent, act: TableActions): HTMLElement {
  const active = sort.column === name;
  const arrow = active ? (sort.descending ? " ↓" : " ↑") : "";
  const button = h("button", { type: "button", title: title(name) }, label(name, by) + arrow);
  on(button, "click", () => {
    // Start with the largest numbers, but with the first names and lines.
    const descending = active ? !sort.descending : !isText(name) && name !== "line";
    act.sort({ column: name, descending });
  });
  return h(
    "th",
    {
      scope: "col",
      "data-column": name,
      "aria-sort": active ? (sort.descending ? "descending" : "ascending") : "none",
      class: isText(name) ? "ep-text" : "",
    },
    button,
  );
}

interface Bars {
  column: string | undefined;
  largest: number;
  /** Length of the solid part of a row's bar, as a share of the bar. */
  own(row: number): number;
}

function bars({ all, rows }: TableContent): Bars {
  const values = (name: string): Cell[] => all.find((column) => column.name === name)?.values ?? [];
  const column = barColumn(all);
  const shown = column ? values(column) : [];
  const [whole, own] =
    column === "share"
      ? [values("device_ns"), values("self_device_ns")]
      : [shown, values("self_host_ns")];
  return {
    column,
    largest: rows.reduce((most, i) => Math.max(most, Number(shown[i] ?? 0)), 0),
    own: (row) => {
      const part = own[row];
      const all = Number(whole[row] ?? 0);
      // Without children, all time is self time.
      return typeof part === "number" && all > 0 ? Math.min(part / all, 1) : 1;
    },
  };
}

function cell(column: Column, i: number, content: TableContent, bar: Bars): HTMLElement {
  const { name } = column;
  const value = column.values[i];
  const text = formatCell(name, value);
  if (name === nameColumn(content.all)) {
    return h(
      "td",
      { class: "ep-text ep-name", title: String(content.titles?.[i] ?? text), "data-text": text },
      h("bdi", text ? {} : { class: "ep-faint" }, shorten(text, content.letters) || NO_NAME),
      // For pointer users; the C key does the same.
      h("button", {
        type: "button",
        class: "ep-row-code",
        tabindex: "-1",
        title: CODE,
        "aria-label": CODE,
      }),
    );
  }
  if (name === bar.column) {
    const fill = h("span", { class: "ep-bar", hidden: !value });
    fill.style.width = `${bar.largest > 0 ? (Number(value) / bar.largest) * 100 : 0}%`;
    const own = h("span", { class: "ep-bar-own" });
    own.style.width = `${bar.own(i) * 100}%`;
    fill.append(own);
    return h(
      "td",
      { class: "ep-share" },
      h("span", { class: "ep-track", "aria-hidden": "true" }, fill),
      h("span", {}, text),
    );
  }
  if (isText(name)) {
    return h("td", { class: "ep-text ep-faint", title: text }, h("bdi", {}, shorten(text, 24)));
  }
  return h("td", {}, text);
}
