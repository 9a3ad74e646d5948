// Copying to the clipboard, with a dialog as fallback if a sandboxed frame may not use it.

import { h } from "./dom.ts";

const NO_CLIPBOARD =
  "This page may not use the clipboard. The text is selected: copy it with Ctrl+C or ⌘C.";

/**
 * Copy `text`. Returns false if the clipboard is not available; then a dialog in `home` shows it.
 */
export async function copyText(text: string, home: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    showText(NO_CLIPBOARD, text, home);
    return false;
  }
}

/** Show a text to copy, below a message that says what for. */
export function showText(message: string, text: string, home: HTMLElement): void {
  const area = h("textarea", {
    readonly: true,
    rows: Math.min(text.split("\n").length, 10),
    "aria-label": "Text to copy",
  });
  area.value = text;
  const close = h("button", { type: "button" }, "close");
  const box = h("dialog", { class: "ep-dialog" }, h("p", {}, message), area, close);
  const focused = (home.getRootNode() as Document | ShadowRoot).activeElement;
  const end = (): void => {
    box.remove();
    if (focused instanceof HTMLElement) focused.focus();
  };
  close.addEventListener("click", end);
  home.append(box);
  // Not modal: in a tall frame a modal dialog could open out of view.
  box.show();
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") end();
    event.stopPropagation();
  });
  area.focus();
  area.select();
}
