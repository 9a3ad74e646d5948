// Source view: device time, launches and copies per line of cells and of functions in files. Without
// device work, it shows host times.

import { h, on } from "../base/dom.ts";
import { count, duration, percent, shorten, size } from "../base/format.ts";
import type { LineTotals, SourceCell, SyntaxSpan } from "../data/wire_types.ts";

const NO_SOURCE =
  "No source: this profile was not recorded from a cell. Put %%gpuprofile at the top of a cell to see its lines here.";

export function sourceView(
  cells: SourceCell[],
  choose: (cell: string, totals: LineTotals) => void,
): HTMLElement {
  const place = h("div", { class: "ep-source" });
  if (cells.every((cell) => cell.lines.length === 0)) {
    place.append(h("p", { class: "ep-empty" }, NO_SOURCE));
    return place;
  }
  const tooltip = new LineTooltip(place);
  const share = shareOfLines(cells);
  if (share) place.append(h("p", { class: "ep-note" }, share));
  // Bars compare the lines of all cells and functions.
  const all = cells.flatMap(({ totals }) => totals);
  for (const cell of cells) {
    if (cell.lines.length === 0) continue;
    place.append(table(cell, all, tooltip, choose));
    if (cell.left_out) {
      const text = `${count(cell.left_out)} more lines are omitted.`;
      place.append(h("p", { class: "ep-note" }, text));
    }
  }
  place.append(tooltip.element);
  return place;
}

/** Sentence with the device time outside the lines of the cells; empty if there is none. */
export function shareOfLines(cells: SourceCell[]): string {
  const device = cells[0]?.device_ns ?? 0;
  // A function's time also counts for the line that called it, so only lines of cells are added.
  const ofLines = cells
    .flatMap(({ file, totals }) => totals.filter(({ stacks }) => !file || stacks))
    .reduce((sum, totals) => sum + totals.device_ns, 0);
  const rest = device - ofLines;
  if (rest <= 0) return "";
  return `${percent(rest / device)} of the device time (${duration(rest)}) does not belong to these lines.`;
}

/** Mark the line with the most time, and scroll to it unless it is in view at the top. */
export function showHottestLine(view: HTMLElement): void {
  const lines = [...view.querySelectorAll<HTMLElement>(".ep-heat")];
  const heat = (of: HTMLElement): number => Number(of.style.getPropertyValue("--heat"));
  const hottest = lines.reduce((most, of) => (heat(of) > heat(most) ? of : most), lines[0]);
  const row = hottest?.parentElement;
  if (!row || heat(hottest) === 0) return;
  row.classList.add("ep-hottest");
  row.title = "Most time";
  const top = hottest.getBoundingClientRect().top - view.getBoundingClientRect().top;
  if (top > 0.8 * view.clientHeight) view.scrollTop = top - 0.5 * view.clientHeight;
}

/** Scroll to a line, as "14:model.py", and mark it. */
export function showLine(view: HTMLElement, place: string): void {
  for (const row of view.querySelectorAll<HTMLElement>("[data-line]")) {
    if (`${row.dataset.line}:${row.closest("table")?.dataset.cell}` !== place) continue;
    row.tabIndex = 0;
    row.focus();
    row.scrollIntoView({ block: "center" });
  }
}

function table(
  cell: SourceCell,
  all: LineTotals[],
  tooltip: LineTooltip,
  choose: (cell: string, totals: LineTotals) => void,
): HTMLElement {
  const totals = new Map(cell.totals.map((of) => [of.line, of]));
  const device = cell.device_ns;
  const columns = device > 0 ? COLUMNS : HOST_COLUMNS;
  const time = device > 0 ? "device_ns" : "host_ns";
  const hottest = all.reduce((most, of) => Math.max(most, of[time]), 0);
  const body = h("tbody");
  cell.lines.forEach((text, i) => {
    const of = totals.get(cell.first + i);
    const code = highlighted(text, cell.spans[i] ?? []);
    const part = of && hottest > 0 ? of[time] / hottest : 0;
    const share = of && device > 0 ? of.device_ns / device : 0;
    const row = line(cell.first + i, code, of, columns, part, share);
    if (of) {
      on(row, "click", () => choose(cell.cell, of));
      on(row, "keydown", (event) => {
        if (event.key === "Enter") choose(cell.cell, of);
      });
      for (const type of ["pointerenter", "focus"] as const) {
        on(row, type, () => tooltip.show(row, of));
      }
      for (const type of ["pointerleave", "blur"] as const) on(row, type, () => tooltip.hide());
    }
    body.append(row);
  });
  const name = h("bdi", {}, cell.file ? fileName(cell.cell) : cell.cell);
  const note = cell.file
    ? h("span", { class: "ep-faint" }, ` line ${cell.first}, as of the end of the profile`)
    : null;
  const heads = columns.map(({ head, style }) =>
    h("th", { scope: "col", class: style ?? "" }, head),
  );
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, h("span", { class: "ep-unseen" }, "heat")),
    h("th", { scope: "col" }, h("span", { class: "ep-unseen" }, "line")),
    h("th", { scope: "col", class: "ep-text", title: cell.cell }, name, note),
    h("th", { scope: "col" }, device > 0 ? "share" : h("span", { class: "ep-unseen" }, "bar")),
    ...heads,
  );
  return h("table", { "data-cell": cell.cell }, h("thead", {}, head), body);
}

interface LineColumn {
  head: string;
  /** Classes of its cells; ep-optional are hidden on a narrow page. */
  style?: string;
  text(of: LineTotals): string;
}

// A line that a compiler such as XLA has read runs on the device, not as a statement.
export const executions = (of: LineTotals): string => (of.count ? count(of.count) : "");
export const hostTime = (of: LineTotals): string =>
  of.count && !of.stacks ? duration(of.host_ns) : "";
const COLUMNS: LineColumn[] = [
  { head: "device", text: (of) => (of.device_ns ? duration(of.device_ns) : "") },
  { head: "kernels", text: (of) => (of.kernels ? count(of.kernels) : "") },
  {
    head: "copies",
    style: "ep-optional",
    text: ({ copies, bytes }) => (copies ? `${count(copies)} (${size(bytes)})` : ""),
  },
  { head: "count", style: "ep-optional", text: executions },
  { head: "host", style: "ep-optional ep-faint", text: hostTime },
];
/** Columns of a profile without device work. */
const HOST_COLUMNS: LineColumn[] = [
  { head: "host", text: hostTime },
  { head: "count", text: executions },
];

function line(
  number: number,
  code: HTMLElement,
  totals: LineTotals | undefined,
  columns: LineColumn[],
  part: number,
  share: number,
): HTMLElement {
  const heat = h("td", { class: "ep-heat", "aria-hidden": "true" });
  const warmth = columns === COLUMNS ? share : part;
  // Keep any time visible.
  heat.style.setProperty("--heat", warmth > 0 ? String(0.12 + 0.88 * warmth) : "0");
  return h(
    "tr",
    totals ? { class: "ep-ran", tabindex: "0", "data-line": number } : { "data-line": number },
    heat,
    h("td", { class: "ep-number" }, String(number)),
    h("td", { class: "ep-code", title: code.textContent?.trim() ?? "" }, code),
    bar(part, share > 0 ? percent(share) : ""),
    ...columns.map(({ style, text }) =>
      h("td", { class: style ?? "" }, totals ? text(totals) : ""),
    ),
  );
}

function bar(part: number, text: string): HTMLElement {
  const fill = h("span", { class: "ep-bar", hidden: part === 0 });
  fill.style.width = `${part * 100}%`;
  fill.append(h("span", { class: "ep-bar-own" }));
  const track = h("span", { class: "ep-track", "aria-hidden": "true", hidden: part === 0 }, fill);
  return h("td", { class: "ep-share" }, track, h("span", {}, text));
}

/** Text of a line with elements for keywords, strings and comments. */
function highlighted(text: string, spans: SyntaxSpan[]): HTMLElement {
  const parts = splitLine(text, spans).map(([part, kind]) =>
    kind ? h("span", { class: `ep-${kind}` }, part) : part,
  );
  return h("code", {}, ...(parts.length ? parts : [" "]));
}

/** Split a line by syntax; spans that do not fit the text are skipped. */
export function splitLine(text: string, spans: SyntaxSpan[]): [text: string, kind: string][] {
  const parts: [string, string][] = [];
  let at = 0;
  for (const [start, end, kind] of spans) {
    if (start < at || end <= start || end > text.length) continue;
    if (start > at) parts.push([text.slice(at, start), ""]);
    parts.push([text.slice(start, end), kind]);
    at = end;
  }
  if (at < text.length) parts.push([text.slice(at), ""]);
  return parts;
}

/** Last two parts of a path, enough to recognize the file. */
function fileName(path: string): string {
  return path.split(/[\\/]/).slice(-2).join("/");
}

/** Tooltip with the kernels of a line, while it is pointed at or focused. */
class LineTooltip {
  readonly element = h("div", { class: "ep-kernels", role: "tooltip", hidden: true });

  constructor(private readonly root: HTMLElement) {}

  hide(): void {
    this.element.hidden = true;
  }

  show(row: HTMLElement, totals: LineTotals): void {
    if (totals.top.length === 0) {
      this.hide();
      return;
    }
    const items = totals.top.map(([name, times, ns]) =>
      h(
        "div",
        {},
        h("span", { class: "ep-kernel-time" }, duration(ns)),
        h("span", { class: "ep-kernel-count" }, `${count(times)} ×`),
        h("bdi", { title: name }, shorten(name, 110)),
      ),
    );
    this.element.replaceChildren(...items);
    this.element.hidden = false;
    const box = this.root.getBoundingClientRect();
    const place = row.getBoundingClientRect();
    const scrolled = this.root.scrollTop - box.top;
    const tall = this.element.offsetHeight;
    // Below the line if it fits into view, else above.
    const below = place.bottom + tall <= box.bottom || place.top - tall < box.top;
    this.element.style.top = `${(below ? place.bottom : place.top - tall) + scrolled}px`;
  }
}
