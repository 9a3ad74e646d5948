// What the notebook around the widget says of itself: its theme, and that an output is cleared.

import type { Theme } from "../render/theme.ts";

/** JupyterLab and Notebook 7 tell it on the body, VS Code too, Colab on the root element. */
export function notebookTheme(): Theme {
  const { jpThemeLight, vscodeThemeKind } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "false" ? "dark" : "light";
  if (vscodeThemeKind) return /dark|high-contrast$/.test(vscodeThemeKind) ? "dark" : "light";
  const colab = document.documentElement.getAttribute("theme");
  if (colab) return colab === "dark" ? "dark" : "light";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Calls back with the theme, now and whenever it changes; the result ends that. */
export function followTheme(apply: (theme: Theme) => void): () => void {
  const tell = (): void => apply(notebookTheme());
  const watch = new MutationObserver(tell);
  watch.observe(document.body, {
    attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"],
  });
  watch.observe(document.documentElement, { attributeFilter: ["theme"] });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", tell);
  tell();
  return () => {
    watch.disconnect();
    system.removeEventListener("change", tell);
  };
}

const OUTPUTS = ".jp-OutputArea";

/**
 * Calls back, once, when the output that an element stands in is cleared; the result ends that.
 *
 * JupyterLab takes a cell that is far out of sight, or folded, out of the document, and brings it
 * back: but then its outputs come and go with the area that holds them.
 */
export function whenCleared(element: HTMLElement, act: () => void): () => void {
  let area = element.closest(OUTPUTS);
  for (let outer = area; outer; outer = outer.parentElement?.closest(OUTPUTS) ?? null) area = outer;
  const holder = area ?? document.body;
  const watch = new MutationObserver(() => {
    if (holder.contains(element)) return;
    watch.disconnect();
    act();
  });
  watch.observe(holder, { childList: true, subtree: true });
  return () => watch.disconnect();
}
