// Headline and findings at the top of the viewer.

import { h, withCode } from "../base/dom.ts";
import type { Count, Finding, ProfileHeader } from "../data/wire_types.ts";
import { notes } from "./notes.ts";
import { repeats } from "./repeats.ts";

export function headerBlock(
  header: ProfileHeader,
  onFinding: (finding: Finding) => void,
  onCount: (count: Count) => void,
): HTMLElement {
  const { headline } = header;
  const line = h("div", { class: "ep-headline" }, h("strong", {}, `${headline.wall} wall`));
  for (const busy of headline.busy) {
    const fill = h("span", { class: "ep-meter-fill" });
    fill.style.width = `${busy.share * 100}%`;
    line.append(
      h(
        "span",
        { class: "ep-busy", title: busy.name },
        `${busy.label} busy `,
        h("strong", {}, busy.text),
        h("span", { class: "ep-meter", "aria-hidden": "true" }, fill),
      ),
    );
  }
  if (headline.counts.length) {
    const counts = h("span", {});
    headline.counts.forEach((one, i) => {
      if (i) counts.append(" · ");
      counts.append(link(one, onCount));
    });
    line.append(counts);
  }
  const { quality, overhead, stray } = headline;
  const parts = [
    quality,
    overhead.text && h("span", { class: "ep-hover", title: overhead.note }, overhead.text),
    stray && link(stray, onCount),
  ].filter(Boolean);
  if (parts.length) {
    const kind = headline.incomplete ? "ep-quality ep-warn" : "ep-quality";
    line.append(
      h("span", { class: kind }, ...parts.flatMap((part, i) => (i ? [", ", part] : part))),
    );
  }
  const block = h("header", { class: "ep-header" }, line);
  if (headline.error)
    block.append(h("p", { class: "ep-warn" }, `The cell raised ${headline.error}.`));
  for (const text of headline.memory)
    block.append(h("p", { class: "ep-memory" }, ...withCode(text.trim())));
  if (headline.empty) block.append(h("p", { class: "ep-empty" }, headline.empty));
  if (headline.repeats) block.append(repeats(headline.repeats));
  if (header.findings.length) {
    const list = h("ul", { class: "ep-findings" });
    for (const finding of header.findings) {
      const link = h("button", { type: "button", class: "ep-finding" }, ...withCode(finding.text));
      link.addEventListener("click", () => onFinding(finding));
      list.append(h("li", {}, link, h("div", { class: "ep-advice" }, ...withCode(finding.advice))));
    }
    block.append(list);
  }
  block.append(...notes(headline.notes));
  return block;
}

const TITLES: Record<Count["what"], string> = {
  kernel: "Highlight the kernels",
  memcpy: "Highlight the copies",
  memset: "Highlight the memsets",
  gaps: "Go to the next idle gap",
  stray: "Highlight activities without an op",
};

function link(count: Count, onCount: (count: Count) => void): HTMLElement {
  const title = TITLES[count.what];
  const button = h("button", { type: "button", class: "ep-count", title }, count.text);
  button.addEventListener("click", () => onCount(count));
  return button;
}
