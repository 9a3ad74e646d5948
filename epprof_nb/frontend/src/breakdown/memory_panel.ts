// Panel below the timeline: what holds memory at a time, as a flame graph and as a table.

import { h, on } from "../base/dom.ts";
import { count, moment, percent, shorten, size } from "../base/format.ts";
import type { DataSource } from "../data/data_source.ts";
import type { Holders } from "../data/memory_holders.ts";
import type { Counter } from "../data/wire_types.ts";
import { memoryCss } from "../render/memory_colours.ts";
import { type HolderNode, holderTree, partOf } from "./holder_tree.ts";

const ROWS = 8;
/** Minimum share of a box that is drawn, and of a box with a name; more would slow the page down. */
const NARROWEST = 0.002;
const NAMED = 0.03;
/** Strength of a box's colour; text on it must stay readable. */
const TINT = 0.45;

interface MemoryActions {
  /** Show the holders at the peak. */
  peak(counter: Counter): void;
  close(): void;
  /** Show a line in the source. */
  line(cell: string, line: number): void;
}

/** A time, and a counter of the device's memory. */
interface Picked {
  at: number;
  counter: Counter;
}

export class MemoryPanel {
  readonly element = h("aside", {
    class: "ep-holders",
    "aria-label": "Holders of memory",
    hidden: true,
  });
  #request = 0;

  constructor(
    private readonly source: DataSource,
    private readonly actions: MemoryActions,
  ) {}

  /** Show what holds the memory of a counter's device at a time; null hides the panel. */
  async show(picked: Picked | null): Promise<void> {
    const number = ++this.#request;
    this.element.hidden = picked === null;
    if (!picked) return;
    this.element.ariaBusy = "true";
    try {
      const holders = await this.source.memoryAt(picked.at);
      if (number !== this.#request) return;
      if (!holders) throw new Error("This page does not contain the holders of memory.");
      this.#show(ofDevice(holders, picked.counter.device), picked);
    } catch (error) {
      if (number !== this.#request) return;
      const text = error instanceof Error ? error.message : String(error);
      this.element.replaceChildren(h("p", { class: "ep-warn" }, text));
    }
    this.element.ariaBusy = "false";
  }

  #show(holders: Holders, { at, counter }: Picked): void {
    const button = (text: string, run: () => void): HTMLElement => {
      const one = h("button", { type: "button", class: "ep-link" }, text);
      on(one, "click", run);
      return one;
    };
    const total = holders.bytes.reduce((sum, bytes) => sum + bytes, 0);
    const isPeak = holders.at === counter.peak?.[0];
    const near = holders.at === at ? "" : `, the time nearest to ${moment(at)} in this page`;
    const which = isPeak ? ", the peak" : near;
    const flame = h("div", { class: "ep-flame" });
    const root = holderTree(holders, counter.name);
    const zoom = (to: HolderNode): void => {
      const from = to === root ? null : button("show all", () => zoom(root));
      const boxes = to === root ? root.children : [to];
      flame.replaceChildren(
        h("div", {}, ...boxes.map((node) => box(node, to.bytes, to.bytes, total, zoom))),
        from ?? "",
      );
    };
    zoom(root);
    this.element.replaceChildren(
      h(
        "div",
        { class: "ep-range-head" },
        h("strong", { title: `${count(total)} bytes` }, `${size(total)} in use`),
        h("span", { class: "ep-faint" }, `at ${moment(holders.at)}${which}`),
        isPeak ? null : button("show the peak", () => this.actions.peak(counter)),
        button("close", () => this.actions.close()),
      ),
      flame,
      this.#table(holders, total, ROWS),
    );
  }

  #table(holders: Holders, total: number, shown: number): HTMLElement {
    const n = holders.bytes.length;
    const rows = [...Array(Math.min(n, shown)).keys()].map((i) => this.#row(holders, i, total));
    const head = ["category", "pool", "module", "op", "line", "", "", "memory", "blocks"];
    const table = h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ...head.map((text, i) => h("th", { scope: "col", class: i < 5 ? "ep-text" : "" }, text)),
        ),
      ),
      h("tbody", {}, ...rows),
    );
    if (n <= shown) return table;
    const all = h("button", { type: "button", class: "ep-link" }, `show all ${count(n)}`);
    const place = h("div", {}, table, all);
    on(all, "click", () => place.replaceWith(this.#table(holders, total, n)));
    return place;
  }

  #row(holders: Holders, i: number, total: number): HTMLElement {
    const text = (value: string | null): HTMLElement =>
      h("td", { class: "ep-text", title: value ?? "" }, h("bdi", {}, shorten(value ?? "", 40)));
    const swatch = h("i", { class: "ep-swatch" });
    swatch.style.background = memoryCss(partOf(holders, i));
    const [cell, line] = [holders.cell[i], holders.line[i]];
    const place = h("td", { class: "ep-text" });
    if (cell !== null && line !== null) {
      const link = h(
        "button",
        { type: "button", class: "ep-link" },
        shorten(`${cell}:${line}`, 30),
      );
      on(link, "click", () => this.actions.line(cell, line));
      place.append(link);
    }
    const bytes = holders.bytes[i];
    const bar = h("span", { class: "ep-bar" });
    bar.style.width = `${(bytes / Math.max(holders.bytes[0], 1)) * 100}%`;
    return h(
      "tr",
      {},
      h("td", { class: "ep-text" }, swatch, partOf(holders, i)),
      text(holders.pool[i]),
      text(holders.module[i]),
      text(holders.name[i]),
      place,
      h("td", {}, h("span", { class: "ep-track" }, bar)),
      h("td", { class: "ep-faint" }, percent(bytes / Math.max(total, 1))),
      h("td", { title: `${count(bytes)} bytes` }, size(bytes)),
      h("td", { class: "ep-faint" }, count(holders.blocks[i])),
    );
  }
}

/** Box of a node, with the boxes of its children below; widths are shares of `whole`. */
function box(
  node: HolderNode,
  above: number,
  whole: number,
  total: number,
  zoom: (to: HolderNode) => void,
): HTMLElement {
  const share = node.bytes / Math.max(whole, 1);
  const label = `${node.name} ${size(node.bytes)}`;
  const button = h(
    "button",
    {
      type: "button",
      tabindex: share >= NAMED ? "0" : "-1",
      title: `${node.level}: ${node.title}\n${count(node.bytes)} bytes, ${percent(node.bytes / Math.max(total, 1))}`,
    },
    share >= NAMED ? h("bdi", {}, label) : "",
  );
  button.style.background = node.part ? memoryCss(node.part, -1, TINT) : "var(--soft)";
  on(button, "click", () => zoom(node));
  const children = node.children.filter(({ bytes }) => bytes / Math.max(whole, 1) >= NARROWEST);
  const below = children.map((child) => box(child, node.bytes, whole, total, zoom));
  const element = h("div", { class: "ep-box" }, button, h("div", {}, ...below));
  // Relative to the box above it.
  element.style.width = `${(100 * node.bytes) / Math.max(above, 1)}%`;
  return element;
}

/** Holders on one device. */
function ofDevice(holders: Holders, device: number): Holders {
  const rows = [...holders.device_id.keys()].filter(
    (i) => holders.device_id[i] === device || holders.device_id[i] === null,
  );
  const taken = <T>(values: T[]): T[] => rows.map((row) => values[row]);
  return Object.fromEntries(
    Object.entries(holders).map(([name, values]) => [
      name,
      Array.isArray(values) ? taken(values) : values,
    ]),
  ) as unknown as Holders;
}
