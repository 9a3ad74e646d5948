// The legend beside the tabs: the colours of the kinds of activity.

import { h } from "../base/dom.ts";
import { type KindName, kindLabel } from "../data/kinds.ts";

const LEGEND: KindName[] = ["kernel", "memcpy", "memset", "synchronization"];

/** Kinds of the legend that occur in a profile. */
export function legendKinds(occurring: string[]): KindName[] {
  return LEGEND.filter((kind) => occurring.includes(kind));
}

/** Colours of the kinds that occur. */
export function legend(occurring: string[]): HTMLElement {
  const items = legendKinds(occurring).map((kind) =>
    h(
      "span",
      { class: "ep-key" },
      h("i", { class: `ep-swatch ep-swatch-${kind}` }),
      kindLabel(kind),
    ),
  );
  return h("div", { class: "ep-legend", "aria-label": "Colours" }, ...items);
}
