// Legend of the timeline: the colours of this profile and their meaning.

import { h, on } from "../base/dom.ts";
import { kindLabel } from "../data/kinds.ts";
import { hue } from "../render/event_colours.ts";
import type { ColourBy, Colouring } from "../timeline/colouring.ts";

/** Legend with a choice of what the colours mean; `kinds` are the kinds in the profile. */
export function legend(
  kinds: readonly string[],
  colouring: Colouring,
  operatorWord: string,
): HTMLElement {
  const labels: Record<ColourBy, string> = {
    kind: "kind",
    name: "kernel name",
    op: "op",
    operator: operatorWord,
  };
  const keys = h("span", { class: "ep-keys" });
  const show = (): void => {
    const { by, hues } = colouring;
    if (by === "kind") {
      keys.replaceChildren(
        ...kinds.map((kind) =>
          key(h("i", { class: `ep-swatch ep-swatch-${kind}` }), kindLabel(kind)),
        ),
      );
      return;
    }
    keys.replaceChildren(
      ...hues.map(({ name, number }) => {
        const swatch = h("i", { class: "ep-swatch" });
        swatch.style.background = hue(number);
        return key(swatch, name || "(no name)");
      }),
    );
  };
  const choice = h(
    "select",
    {},
    ...colouring.choices.map((by) =>
      h("option", { value: by, selected: by === colouring.by }, labels[by]),
    ),
  );
  on(choice, "change", () => {
    colouring.by = choice.value as ColourBy;
    show();
  });
  show();
  const label = h("label", { hidden: colouring.choices.length < 2 }, "colour by ", choice);
  return h("div", { class: "ep-legend" }, keys, label);
}

function key(swatch: HTMLElement, name: string): HTMLElement {
  return h("span", { class: "ep-key", title: name }, swatch, name);
}
