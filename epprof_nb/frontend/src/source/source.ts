// Source with heat: device time, launches and copies at each line of the cells, and of functions
// that stand in files.

import { h } from "../base/dom.ts";
import { count, duration, percent, shorten, size } from "../base/format.ts";
import type { LineTotals, SourceCell, Span } from "../data/model.ts";

const NO_SOURCE =
  "No source: this profile was not taken of a cell. Put %%gpuprofile above one to see its lines here.";

export function sourceView(
  cells: SourceCell[],
  choose: (cell: string, totals: LineTotals) => void,
): HTMLElement {
  const place = h("div", { class: "ep-source" });
  if (cells.every((cell) => cell.lines.length === 0)) {
    place.append(h("p", { class: "ep-empty" }, NO_SOURCE));
    return place;
  }
  const told = new Told(place);
  // A function's time counts for the line that called it too: each kind is a whole of its own.
  const whole = (file: boolean): number =>
    cells
      .filter((cell) => cell.file === file)
      .flatMap((cell) => cell.totals)
      .reduce((sum, totals) => sum + totals.device_ns, 0);
  const device = { cells: whole(false), files: whole(true) };
  for (const cell of cells) {
    if (cell.lines.length === 0) continue;
    place.append(table(cell, cell.file ? device.files : device.cells, told, choose));
    if (cell.left_out) {
      const text = `${count(cell.left_out)} more lines are left out.`;
      place.append(h("p", { class: "ep-note" }, text));
    }
  }
  place.append(told.element);
  return place;
}

function table(
  cell: SourceCell,
  device: number,
  told: Told,
  choose: (cell: string, totals: LineTotals) => void,
): HTMLElement {
  const totals = new Map(cell.totals.map((of) => [of.line, of]));
  const hottest = cell.totals.reduce((most, of) => Math.max(most, of.device_ns), 0);
  const body = h("tbody");
  cell.lines.forEach((text, i) => {
    const of = totals.get(cell.first + i);
    const code = coloured(text, cell.spans[i] ?? []);
    const row = line(cell.first + i, code, of, device, hottest);
    if (of) {
      row.addEventListener("click", () => choose(cell.cell, of));
      row.addEventListener("keydown", (event) => {
        if (event.key === "Enter") choose(cell.cell, of);
      });
      for (const type of ["pointerenter", "focus"]) {
        row.addEventListener(type, () => told.show(row, of));
      }
      for (const type of ["pointerleave", "blur"]) row.addEventListener(type, () => told.hide());
    }
    body.append(row);
  });
  const name = h("bdi", {}, cell.file ? fileName(cell.cell) : cell.cell);
  const note = cell.file
    ? h("span", { class: "ep-faint" }, ` line ${cell.first}, as the file was at the profile's end`)
    : null;
  const heads = ["share", "device", "kernels", "copies", "count", "host"].map((text) =>
    h("th", { scope: "col", class: OPTIONAL.has(text) ? "ep-optional" : "" }, text),
  );
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, h("span", { class: "ep-unseen" }, "heat")),
    h("th", { scope: "col" }, h("span", { class: "ep-unseen" }, "line")),
    h("th", { scope: "col", class: "ep-text", title: cell.cell }, name, note),
    ...heads,
  );
  return h("table", {}, h("thead", {}, head), body);
}

/** Columns that a narrow page goes without. */
const OPTIONAL = new Set(["copies", "count", "host"]);

function line(
  number: number,
  code: HTMLElement,
  totals: LineTotals | undefined,
  device: number,
  hottest: number,
): HTMLElement {
  const share = totals && device > 0 ? totals.device_ns / device : 0;
  const heat = h("td", { class: "ep-heat", "aria-hidden": "true" });
  // A line with any device time at all keeps a visible trace.
  heat.style.setProperty("--heat", share > 0 ? String(0.12 + 0.88 * share) : "0");
  const copies = totals?.copies ? `${count(totals.copies)} (${size(totals.bytes)})` : "";
  return h(
    "tr",
    totals ? { class: "ep-ran", tabindex: "0", "data-line": number } : { "data-line": number },
    heat,
    h("td", { class: "ep-number" }, String(number)),
    h("td", { class: "ep-code", title: code.textContent?.trim() ?? "" }, code),
    bar(totals && hottest > 0 ? totals.device_ns / hottest : 0, share > 0 ? percent(share) : ""),
    h("td", {}, totals?.device_ns ? duration(totals.device_ns) : ""),
    h("td", {}, totals?.kernels ? count(totals.kernels) : ""),
    h("td", { class: "ep-optional" }, copies),
    h("td", { class: "ep-optional" }, totals ? count(totals.count) : ""),
    h("td", { class: "ep-optional ep-faint" }, totals ? duration(totals.host_ns) : ""),
  );
}

function bar(part: number, text: string): HTMLElement {
  const fill = h("span", { class: "ep-bar", hidden: part === 0 });
  fill.style.width = `${part * 100}%`;
  fill.append(h("span", { class: "ep-bar-own" }));
  const track = h("span", { class: "ep-track", "aria-hidden": "true", hidden: part === 0 }, fill);
  return h("td", { class: "ep-share" }, track, h("span", {}, text));
}

/** A line's text, its keywords, strings and comments in elements of their own. */
function coloured(text: string, spans: Span[]): HTMLElement {
  const parts = pieces(text, spans).map(([part, kind]) =>
    kind ? h("span", { class: `ep-${kind}` }, part) : part,
  );
  return h("code", {}, ...(parts.length ? parts : [" "]));
}

/** The text in pieces, each with its kind; spans that do not fit the text are passed over. */
export function pieces(text: string, spans: Span[]): [text: string, kind: string][] {
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

/** The last two parts of a path: enough to know the file by. */
function fileName(path: string): string {
  return path.split(/[\\/]/).slice(-2).join("/");
}

/** What a line launched, shown while the line is pointed at or has the focus. */
class Told {
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
    // Below the line where there is room in sight, else above it.
    const below = place.bottom + tall <= box.bottom || place.top - tall < box.top;
    this.element.style.top = `${(below ? place.bottom : place.top - tall) + scrolled}px`;
  }
}
