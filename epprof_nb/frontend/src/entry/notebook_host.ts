// State of the notebook around the widget: its theme, and the clearing of outputs.

import type { Theme } from "../render/palettes.ts";

/**
 * Detect the theme. JupyterLab, Notebook 7 and VS Code set it on the body, Colab on the root
 * element.
 */
function notebookTheme(): Theme {
  const { jpThemeLight, vscodeThemeKind } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "false" ? "dark" : "light";
  if (vscodeThemeKind) return /dark|high-contrast$/.test(vscodeThemeKind) ? "dark" : "light";
  const colab = document.documentElement.getAttribute("theme");
  if (colab) return colab === "dark" ? "dark" : "light";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Call `apply` with the theme, now and on every change. Returns a function that stops it. */
export function followTheme(apply: (theme: Theme) => void): () => void {
  const update = (): void => apply(notebookTheme());
  const watch = new MutationObserver(update);
  watch.observe(document.body, {
    attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"],
  });
  watch.observe(document.documentElement, { attributeFilter: ["theme"] });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", update);
  update();
  return () => {
    watch.disconnect();
    system.removeEventListener("change", update);
  };
}

const OUTPUTS = ".jp-OutputArea";

/**
 * Call `act` once when the output that contains an element is cleared. Returns a function that
 * stops it.
 *
 * JupyterLab removes a cell that is far out of view, or folded, from the document and restores it
 * later; then its outputs move with the area that holds them.
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
