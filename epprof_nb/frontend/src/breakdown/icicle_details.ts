// Details of one node of the icicle, for the tooltip and the panel below.

import { h } from "../base/dom.ts";
import { count, duration, percent, shorten, size } from "../base/format.ts";
import { PASSES, type Tree } from "./tree.ts";

export function nodeTooltip(tree: Tree, node: number): Node[] {
  const name = h("bdi", {}, shorten(tree.title(node), 300));
  const title = h("div", { class: "ep-tip-title" }, name);
  const level = h("span", { class: "ep-faint ep-level" }, tree.level(node));
  return [title, level, list(tree, node)];
}

/** `show` selects the node's events in the timeline, or goes to the line of a frame. */
export function nodePanel(tree: Tree, node: number, show: () => void): Node[] {
  const name = tree.name(node);
  const place = tree.place(node);
  const text = place?.join(":").replace(/.*[\\/]/, "") ?? "show in the timeline";
  const button = h("button", { type: "button", class: "ep-tool" }, text);
  button.addEventListener("click", show);
  const details = h(
    "div",
    { class: "ep-node-details" },
    h("span", { class: "ep-leaf", title: tree.title(node) }, h("bdi", {}, shorten(name, 110))),
    h("span", { class: "ep-faint" }, tree.level(node)),
    node > 0 && !tree.data.others[node] ? button : null,
  );
  return [details, list(tree, node)];
}

function list(tree: Tree, node: number): HTMLElement {
  const rows = fields(tree, node).map(([name, text]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, text)),
  );
  return h("dl", {}, ...rows);
}

type Sum = [name: string, values: number[] | undefined, text: (value: number) => string];

function sums(node: number, ...columns: Sum[]): [string, string, boolean][] {
  return columns.map(([name, values, text]) => {
    const value = values?.[node] ?? 0;
    return [name, text(value), value > 0];
  });
}

function fields(tree: Tree, node: number): [name: string, text: string][] {
  const { data } = tree;
  const passes = tree.level(node) === "module" ? PASSES : [];
  const share = data.device_ns[0] > 0 ? data.device_ns[node] / data.device_ns[0] : 0;
  const all: [string, string, boolean][] = [
    ["device", duration(data.device_ns[node]), data.device_ns[node] > 0],
    ["of all", percent(share), share > 0],
    ["self", duration(data.self_device_ns[node]), data.self_device_ns[node] > 0],
    ...sums(
      node,
      ["host", data.host_ns, duration],
      ["launches", data.launches, count],
      ["waits", data.waits, count],
      ["waited", data.wait_ns, duration],
    ),
    ...passes.map((pass): [string, string, boolean] => {
      const time = tree.ofPass(pass, node);
      return [pass, duration(time), time > 0];
    }),
    ["count", count(data.count[node]), data.count[node] > 0],
    ["kernels", count(data.kernels[node]), data.kernels[node] > 0],
    ["bytes", size(data.bytes[node]), data.bytes[node] > 0],
  ];
  return all.filter(([, , details]) => details).map(([name, text]) => [name, text]);
}
