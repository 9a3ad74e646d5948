// The keys that move through the timeline.

import type { Command } from "./keys.ts";
import type { Timeline } from "./timeline.ts";

const ZOOM = 1.35;
const PAN = 0.12;
const SCROLL = 40;
const GROUP = "Move";

export function moves(timeline: Timeline): Command[] {
  const { viewport, chosen } = timeline;
  const pan = (share: number): void => viewport.pan(viewport.width * share);
  const command = (keys: string[], help: string, run: () => void): Command => ({
    keys,
    help,
    group: GROUP,
    run,
  });
  return [
    command(["w", "+", "="], "Zoom in", () => viewport.zoom(1 / ZOOM)),
    command(["s", "-"], "Zoom out", () => viewport.zoom(ZOOM)),
    command(["a", "arrowleft"], "Earlier", () => pan(-PAN)),
    command(["d", "arrowright"], "Later", () => pan(PAN)),
    command(["arrowup"], "Scroll up", () => timeline.scroll(-SCROLL)),
    command(["arrowdown"], "Scroll down", () => timeline.scroll(SCROLL)),
    command(["0"], "Show all", () => viewport.fit()),
    command(["f"], "Show the selection, or all", () => {
      const { extent } = chosen;
      if (extent) viewport.show(extent);
      else viewport.fit();
    }),
    command(["backspace", "alt+arrowleft"], "Back to the window before", () => viewport.back()),
    command(["shift+backspace", "alt+arrowright"], "Forward again", () => viewport.forward()),
    command(["escape"], "Clear the selection", () => chosen.select(null)),
  ];
}
