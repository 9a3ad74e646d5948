// Notes about a profile: one line that expands to all of them.

import { h } from "../base/dom.ts";

/** Longest single note that is shown without folding. */
const SHORT = 130;

export function notes(all: readonly string[]): HTMLElement[] {
  if (all.length === 0) return [];
  const [first] = all;
  if (all.length === 1 && first.length <= SHORT) return [h("p", { class: "ep-note" }, first)];
  const more = all.length > 1 ? ` · ${all.length - 1} more` : "";
  const line = h(
    "summary",
    {},
    h("span", { class: "ep-closed ep-first-sentence" }, firstSentence(first)),
    h("span", { class: "ep-closed" }, more),
    h("span", { class: "ep-opened" }, all.length > 1 ? "notes" : "note"),
  );
  return [
    h("details", { class: "ep-note ep-notes" }, line, ...all.map((note) => h("p", {}, note))),
  ];
}

/** First sentence of a note. */
export function firstSentence(note: string): string {
  return note.split(/(?<=[.!?]) (?=[A-Z])/)[0];
}
