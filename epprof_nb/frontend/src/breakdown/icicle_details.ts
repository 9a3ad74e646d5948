// Details of one node of the icicle, for the tooltip and the panel below.

import { h, on } from "../base/dom.ts";
import { count, duration, percent, shorten, signedChange, size } from "../base/format.ts";
import { PASSES, placeText, type Tree, type TreeNode } from "./icicle_tree.ts";

/** Actions of the buttons of a node; without a function there is no button. */
export interface NodeActions {
  /** Select the node's events in the timeline. */
  node?(node: TreeNode): void;
  /** Show a line of a cell or file in the source. */
  line?(cell: string, line: number): void;
}

export function nodeTooltip(tree: Tree, node: number): (Node | string)[] {
  const name = h("bdi", {}, shorten(tree.title(node), 300));
  const title = h("div", { class: "ep-tip-title" }, name);
  const level = h("span", { class: "ep-faint ep-level" }, tree.level(node));
  const text = tree.text(node);
  return [title, text ? h("code", {}, shorten(text, 90)) : "", level, list(tree, node)];
}

/** `zoom` gives the node's box the full width. */
export function nodePanel(
  tree: Tree,
  node: number,
  actions: NodeActions,
  zoom: () => void,
): Node[] {
  const name = tree.name(node);
  const place = tree.place(node);
  const button = (css: string, text: string, title: string, act: () => void): HTMLElement => {
    const one = h("button", { type: "button", class: css, title }, text);
    on(one, "click", act);
    return one;
  };
  const { line, node: select } = actions;
  const isAlone = node > 0 && !tree.data.others[node];
  const details = h(
    "div",
    { class: "ep-node-details" },
    h("span", { class: "ep-leaf", title: tree.title(node) }, h("bdi", {}, shorten(name, 110))),
    place && line
      ? button(
          "ep-link ep-code",
          shorten(tree.text(node), 90) || placeText(place),
          `Show ${placeText(place)} in the source`,
          () => line(...place),
        )
      : h("code", {}, tree.text(node)),
    h("span", { class: "ep-faint" }, tree.level(node)),
    button("ep-tool", "zoom in", "Zoom into this box (Enter, or a double click on it)", zoom),
    isAlone && select
      ? button("ep-tool", "show in the timeline", "Select what it launched in the timeline", () =>
          select(tree.describe(node)),
        )
      : null,
  );
  return [details, list(tree, node)];
}

function list(tree: Tree, node: number): HTMLElement {
  const rows = fields(tree, node).map(([name, text]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, text)),
  );
  return h("dl", {}, ...rows);
}

type Sum = [
  name: string,
  values: number[] | undefined,
  text: (value: number) => string,
  before?: number[] | undefined,
];

/** A count, or a mean per repeat. */
const number = (value: number): string => count(Math.round(value * 100) / 100);

function sums(node: number, ...columns: Sum[]): [string, string, boolean][] {
  return columns.map(([name, values, text, old]) => {
    const value = values?.[node] ?? 0;
    const before = old?.[node] ?? value;
    const change = `${text(before)} → ${text(value)} (${signedChange(before, value)})`;
    return [name, before === value ? text(value) : change, Math.max(value, before) > 0];
  });
}

function fields(tree: Tree, node: number): [name: string, text: string][] {
  const { data } = tree;
  const passes = tree.level(node) === "module" ? PASSES : [];
  const share = data.device_ns[0] > 0 ? data.device_ns[node] / data.device_ns[0] : 0;
  const all: [string, string, boolean][] = [
    ...sums(node, ["device", data.device_ns, duration, data.old_device_ns]),
    ["of all", percent(share), share > 0],
    ...sums(
      node,
      ["self", data.self_device_ns, duration],
      ["host", data.host_ns, duration],
      ["launches", data.launches, number, data.old_launches],
      ["waits", data.waits, number, data.old_waits],
      ["waited", data.wait_ns, duration, data.old_wait_ns],
    ),
    ...passes.map((pass): [string, string, boolean] => {
      const time = tree.ofPass(pass, node);
      return [pass, duration(time), time > 0];
    }),
    ...sums(
      node,
      ["count", data.count, number, data.old_count],
      ["kernels", data.kernels, number, data.old_kernels],
      ["bytes", data.bytes, size],
    ),
  ];
  return all.filter(([, , details]) => details).map(([name, text]) => [name, text]);
}
