// Help dialog with every registered gesture and shortcut.

import { h, on } from "../../base/dom.ts";
import type { Shortcuts } from "./shortcut_registry.ts";

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

/** Open the help. The browser keeps the focus in it, and Escape closes it. */
export function openHelp(keys: Shortcuts, owner: HTMLElement): HTMLDialogElement {
  const close = h("button", { type: "button", class: "ep-help-close", "aria-label": "Close" }, "×");
  const dialog = h(
    "dialog",
    { class: "ep-help", "aria-label": "Gestures and keys" },
    h("div", { class: "ep-help-head" }, h("strong", {}, "Gestures and keys"), close),
    h("div", { class: "ep-help-groups" }, ...groups(keys)),
  );
  on(close, "click", () => dialog.close());
  // A click on the backdrop has the dialog itself as its target.
  on(dialog, "click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  // Keep keys from the timeline while the dialog is open.
  on(dialog, "keydown", (event) => {
    event.stopPropagation();
    if (event.key === "?") dialog.close();
  });
  on(dialog, "close", () => {
    dialog.remove();
    owner.focus();
  });
  owner.append(dialog);
  dialog.showModal();
  return dialog;
}

function groups(keys: Shortcuts): HTMLElement[] {
  const sections = new Map<string, HTMLElement[]>();
  const add = (group: string, how: HTMLElement, help: string): void => {
    const rows = sections.get(group) ?? [];
    sections.set(group, rows);
    rows.push(h("div", {}, h("dt", {}, how), h("dd", {}, help)));
  };
  for (const { gesture, help, group } of keys.gestures) {
    add(group, h("span", { class: "ep-gesture" }, gesture), help);
  }
  for (const { keys: all, help, group } of keys.commands) {
    const names = all.map((key) => h("kbd", {}, keyLabel(key)));
    add(group, h("span", {}, ...names), help);
  }
  return [...sections].map(([group, rows]) =>
    h("section", {}, h("h4", {}, group), h("dl", {}, ...rows)),
  );
}

/** Label of a key: "shift+backspace" becomes "Shift Backspace". */
export function keyLabel(key: string): string {
  // "+" is also a key.
  const parts = key === "+" ? [key] : key.split("+");
  return parts.map((part) => NAMES[part] ?? part.toUpperCase()).join(" ");
}
