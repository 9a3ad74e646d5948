// Tree as a table, an alternative to the icicle for screen readers and keyboards.

import { h } from "../base/dom.ts";
import { count, duration, percent, shorten } from "../base/format.ts";
import type { IcicleLayout } from "./icicle_tree.ts";

const ROWS = 300;

/** Build a table of the boxes below `root` in the icicle's order, without tiny ones. */
export function treeTable(layout: IcicleLayout, root: number): HTMLTableElement {
  const { tree, values } = layout;
  const { data } = tree;
  const least = values[root] / 1000;
  const rows: HTMLElement[] = [];
  const add = (node: number): void => {
    if (rows.length >= ROWS || values[node] < least) return;
    const level = tree.depth[node] - tree.depth[root];
    const name = h(
      "th",
      { scope: "row", class: "ep-text ep-name", title: tree.title(node) },
      h("bdi", {}, shorten(tree.name(node), 60)),
    );
    name.style.paddingLeft = `${4 + level * 14}px`;
    const share = data.device_ns[0] > 0 ? data.device_ns[node] / data.device_ns[0] : 0;
    rows.push(
      h(
        "tr",
        { "aria-level": level + 1 },
        name,
        h("td", { class: "ep-text ep-faint" }, tree.level(node)),
        h("td", {}, share ? percent(share) : ""),
        h("td", {}, data.device_ns[node] ? duration(data.device_ns[node]) : ""),
        h("td", {}, data.host_ns?.[node] ? duration(data.host_ns[node]) : ""),
        h("td", {}, data.count[node] ? count(data.count[node]) : ""),
      ),
    );
    for (const child of layout.children(node)) add(child);
  };
  add(root);
  const head = ["name", "level", "share", "device", "host", "count"].map((text, i) =>
    h("th", { scope: "col", class: i < 2 ? "ep-text" : "" }, text),
  );
  return h(
    "table",
    { role: "treegrid", "aria-readonly": "true", "aria-label": "Tree as a table" },
    h("thead", {}, h("tr", {}, ...head)),
    h("tbody", {}, ...rows),
  );
}
