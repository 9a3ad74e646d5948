// Surroundings of a static page: the theme of the system, or of the notebook that shows the page in
// a sandboxed frame; such a frame sends its height to the notebook.

import type { Theme } from "../render/palettes.ts";

/** Whether the page is in a frame. */
export const framed = window.parent !== window;

/** Call `setTheme` with the theme, now and on every change, and report the height of the page. */
export function followHost(setTheme: (theme: Theme) => void): void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  let requested: Theme | null = null;
  const apply = (): void => {
    const theme = requested ?? (system.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    setTheme(theme);
  };
  system.addEventListener("change", apply);
  window.addEventListener("message", (event) => {
    if (event.source !== window.parent) return;
    const theme: unknown = event.data?.epprofTheme;
    if (theme === "light" || theme === "dark") {
      requested = theme;
      apply();
    }
  });
  apply();
  if (!framed) return;
  // The frame's origin is opaque, so no target origin can be given; the height is not secret.
  const sendHeight = (): void =>
    window.parent.postMessage(
      { epprofHeight: Math.ceil(document.documentElement.offsetHeight) },
      "*",
    );
  new ResizeObserver(sendHeight).observe(document.documentElement);
  sendHeight();
}
