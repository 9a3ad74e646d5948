// Button that shows the viewer on the whole screen, with a timeline that fills the height.

import { h, on } from "../base/dom.ts";
import type { Timeline } from "../timeline/timeline.ts";

const LEAST = 280;

/**
 * Button and shortcut for the full screen; null if the page may not use it, such as a frame without
 * permission. The browser ends it on Escape.
 */
export function fullScreen(timeline: Timeline): HTMLElement | null {
  if (!document.fullscreenEnabled) return null;
  const usual = timeline.maxHeight;
  const toggle = (): void => {
    const root = timeline.element.closest<HTMLElement>(".ep-viewer");
    if (!root) return;
    const isFull = (): boolean =>
      (root.getRootNode() as Document | ShadowRoot).fullscreenElement === root;
    if (isFull()) {
      void document.exitFullscreen();
      return;
    }
    const rest = root.offsetHeight - timeline.element.offsetHeight;
    root.onfullscreenchange = () => {
      timeline.maxHeight = isFull() ? Math.max(window.innerHeight - rest, LEAST) : usual;
    };
    root.requestFullscreen().catch(() => button.remove());
  };
  const button = h(
    "button",
    { type: "button", class: "ep-pill ep-full", title: "Full screen (Shift+F)" },
    "full screen",
  );
  on(button, "click", toggle);
  timeline.shortcuts.add({ keys: ["shift+f"], help: "Full screen", group: "View", run: toggle });
  return button;
}
