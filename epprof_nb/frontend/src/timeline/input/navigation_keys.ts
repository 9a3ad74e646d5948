// Keys for moving through the timeline and for its lanes, and the list of gestures. Keys that select
// events, time ranges or memory are in app/selection_keys.ts.

import type { Viewport } from "../../base/viewport.ts";
import type { SelectionController } from "../../selection/controller.ts";
import type { LaneState } from "../lane_state.ts";
import { openHelp } from "./help_dialog.ts";
import type { Command, Gesture, Shortcuts } from "./shortcut_registry.ts";

const ZOOM = 1.35;
const PAN = 0.12;
const SCROLL = 40;
/**
 * Rates while a key is held, per millisecond: share of the width, and logarithm of the zoom factor.
 */
const HOLD_PAN = 0.0012;
const HOLD_ZOOM = 0.0035;
const MOVE = "Move";
const LANES = "Lanes";

export const GESTURES: Gesture[] = [
  { group: MOVE, gesture: "Wheel, pinch", help: "Zoom at the pointer" },
  { group: MOVE, gesture: "Drag", help: "Move in time and among the lanes" },
  { group: MOVE, gesture: "Shift drag", help: "Zoom to the time range" },
  { group: MOVE, gesture: "Shift wheel", help: "Move in time" },
  { group: MOVE, gesture: "Double click", help: "Zoom to the event; outside events, show all" },
  { group: "Select", gesture: "Click", help: "Select the event and highlight what belongs to it" },
  { group: "Select", gesture: "Drag on the ruler", help: "Mark a time range" },
  { group: "Measure", gesture: "M and drag", help: "Measure from edge to edge" },
];

/** The parts of the timeline that the commands act on. */
interface Navigable {
  readonly element: HTMLElement;
  readonly viewport: Viewport;
  readonly selection: SelectionController;
  readonly laneState: LaneState;
  readonly shortcuts: Shortcuts;
  scroll(pixels: number): void;
  foldable(): string[];
  targetLane(): string | null;
}

export function navigationKeys(timeline: Navigable): Command[] {
  const { viewport, selection, laneState } = timeline;
  const pan = (share: number): void => viewport.nudge(viewport.width * share);
  const command = (keys: string[], group: string, help: string, run: () => unknown): Command => ({
    keys,
    help,
    group,
    run,
  });
  const zooming = (keys: string[], help: string, sign: 1 | -1): Command => ({
    ...command(keys, MOVE, help, () => viewport.nudge(0, ZOOM ** sign)),
    hold: (ms) => viewport.nudge(0, Math.exp(sign * HOLD_ZOOM * ms)),
  });
  const panning = (keys: string[], help: string, sign: 1 | -1): Command => ({
    ...command(keys, MOVE, help, () => pan(sign * PAN)),
    hold: (ms) => pan(sign * HOLD_PAN * ms),
  });
  return [
    zooming(["w", "+", "="], "Zoom in", -1),
    zooming(["s", "-"], "Zoom out", 1),
    panning(["a", "arrowleft"], "Earlier", -1),
    panning(["d", "arrowright"], "Later", 1),
    command(["arrowup"], MOVE, "Scroll up", () => timeline.scroll(-SCROLL)),
    command(["arrowdown"], MOVE, "Scroll down", () => timeline.scroll(SCROLL)),
    command(["0"], MOVE, "Show all", () => viewport.fit()),
    command(["f"], MOVE, "Zoom to the selection; without one, show all", () => {
      const { extent } = selection;
      if (extent) viewport.show(extent);
      else viewport.fit();
    }),
    command(["backspace", "alt+arrowleft"], MOVE, "Back to the previous view", () =>
      viewport.back(),
    ),
    command(["shift+backspace", "alt+arrowright"], MOVE, "Forward to the next view", () =>
      viewport.forward(),
    ),
    command(["p"], LANES, "Pin the lane under the pointer to the top, or unpin it", () => {
      const key = timeline.targetLane();
      if (key === null) return false;
      laneState.togglePin(key);
      return true;
    }),
    command(["c"], LANES, "Fold or unfold all lanes", () =>
      laneState.toggleAll(timeline.foldable()),
    ),
    command(["?"], "Help", "Show this help", () => openHelp(timeline.shortcuts, timeline.element)),
  ];
}
