// The help that `?` opens: every gesture and key, from what is registered.

import { h } from "../../base/dom.ts";
import type { Keys } from "./shortcuts.ts";

const NAMES: Record<string, string> = {
  arrowleft: "←",
  arrowright: "→",
  arrowup: "↑",
  arrowdown: "↓",
  backspace: "Backspace",
  escape: "Esc",
  shift: "Shift",
  alt: "Alt",
  ctrl: "Ctrl",
};

/** Opens the help over the page; the browser keeps the focus in it, and Escape closes it. */
export function openHelp(keys: Keys, owner: HTMLElement): HTMLDialogElement {
  const close = h("button", { type: "button", class: "ep-help-close", "aria-label": "Close" }, "×");
  const dialog = h(
    "dialog",
    { class: "ep-help", "aria-label": "Gestures and keys" },
    h("div", { class: "ep-help-head" }, h("strong", {}, "Gestures and keys"), close),
    h("div", { class: "ep-help-groups" }, ...groups(keys)),
  );
  close.addEventListener("click", () => dialog.close());
  // A click beside the dialog falls on its backdrop, which counts as the dialog itself.
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  // Keys mean nothing to the timeline while the help is read.
  dialog.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "?") dialog.close();
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    owner.focus();
  });
  owner.append(dialog);
  dialog.showModal();
  return dialog;
}

function groups(keys: Keys): HTMLElement[] {
  const found = new Map<string, HTMLElement[]>();
  const add = (group: string, how: HTMLElement, help: string): void => {
    const rows = found.get(group) ?? [];
    found.set(group, rows);
    rows.push(h("div", {}, h("dt", {}, how), h("dd", {}, help)));
  };
  for (const { gesture, help, group } of keys.gestures) {
    add(group, h("span", { class: "ep-gesture" }, gesture), help);
  }
  for (const { keys: all, help, group } of keys.commands) {
    const names = all.map((key) => h("kbd", {}, named(key)));
    add(group, h("span", {}, ...names), help);
  }
  return [...found].map(([group, rows]) =>
    h("section", {}, h("h4", {}, group), h("dl", {}, ...rows)),
  );
}

/** A key as it stands on the keyboard: "shift+backspace" is "Shift Backspace". */
export function named(key: string): string {
  // The sign "+" is a key of its own.
  const parts = key === "+" ? [key] : key.split("+");
  return parts.map((part) => NAMES[part] ?? part.toUpperCase()).join(" ");
}
