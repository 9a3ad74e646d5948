// The cells' source with heat: device time, launches and copies at each line.

import { h } from "./dom.ts";
import { count, duration, percent, shorten, size } from "./format.ts";
import type { LineTotals, SourceCell } from "./model.ts";

export function source(
  cells: SourceCell[],
  choose: (cell: string, totals: LineTotals) => void,
): HTMLElement {
  const place = h("div", { class: "ep-source" });
  if (cells.every((cell) => cell.lines.length === 0)) {
    place.append(h("p", { class: "ep-empty" }, "No source: this profile was not taken of a cell."));
    return place;
  }
  const all = cells.flatMap((cell) => cell.totals);
  const device = all.reduce((sum, totals) => sum + totals.device_ns, 0);
  for (const cell of cells) {
    const body = h("tbody");
    cell.lines.forEach((text, i) => {
      const totals = cell.totals.find((t) => t.line === i + 1);
      body.append(line(i + 1, text, totals, device, () => totals && choose(cell.cell, totals)));
    });
    const titles = ["", "", cell.cell, "share", "device", "kernels", "copies", "host"];
    const head = h(
      "tr",
      {},
      ...titles.map((t, i) => h("th", { scope: "col", class: i < 3 ? "ep-text" : "" }, t)),
    );
    place.append(h("table", {}, h("thead", {}, head), body));
    if (cell.left_out) {
      place.append(
        h("p", { class: "ep-note" }, `${count(cell.left_out)} more lines are left out.`),
      );
    }
  }
  return place;
}

function line(
  number: number,
  text: string,
  totals: LineTotals | undefined,
  device: number,
  choose: () => void,
): HTMLElement {
  const share = totals && device > 0 ? totals.device_ns / device : 0;
  const heat = h("td", { class: "ep-heat", "aria-hidden": "true" });
  // A line with any device time at all keeps a visible trace.
  heat.style.setProperty("--heat", share > 0 ? String(0.12 + 0.88 * share) : "0");
  const code = h("td", { class: "ep-code" }, h("code", {}, text || " "));
  const copies = totals?.copies ? `${count(totals.copies)} (${size(totals.bytes)})` : "";
  const row = h(
    "tr",
    totals ? { class: "ep-ran", tabindex: "0" } : {},
    heat,
    h("td", { class: "ep-number" }, String(number)),
    code,
    h("td", {}, share > 0 ? percent(share) : ""),
    h("td", {}, totals?.device_ns ? duration(totals.device_ns) : ""),
    h("td", {}, totals?.kernels ? count(totals.kernels) : ""),
    h("td", {}, copies),
    h("td", { class: "ep-faint" }, totals ? duration(totals.host_ns) : ""),
  );
  if (!totals) return row;
  if (totals.top.length) code.append(kernels(totals));
  row.addEventListener("click", choose);
  row.addEventListener("keydown", (event) => {
    if (event.key === "Enter") choose();
  });
  return row;
}

/** What the line launched, shown while the line is pointed at or has the focus. */
function kernels(totals: LineTotals): HTMLElement {
  return h(
    "div",
    { class: "ep-kernels", role: "tooltip" },
    ...totals.top.map(([name, times, ns]) =>
      h(
        "div",
        {},
        h("span", { class: "ep-kernel-time" }, duration(ns)),
        h("span", { class: "ep-kernel-count" }, `${count(times)} ×`),
        h("span", { title: name }, shorten(name, 96)),
      ),
    ),
  );
}
