// What draws the timeline. The timeline knows times, lanes and selection, a renderer knows pixels;
// one that keeps the columns on the GPU can stand beside the Canvas2D one.

import type { BusyCurve, Slice } from "./model.ts";
import type { Range } from "./scale.ts";
import type { Palette } from "./theme.ts";

/** Where a row lies and how its events look. */
export interface Band {
  y: number;
  height: number;
  look: "op" | "api" | "activity" | "foot";
}

/** Which events are lit while a selection stands: one value an event, by table. */
export interface Lit {
  op: Uint8Array;
  api: Uint8Array;
  act: Uint8Array;
  /** The one event that was clicked. */
  chosen: { prefix: "op" | "api" | "act"; event: number } | null;
}

export interface Frame {
  view: Range;
  width: number;
  height: number;
  palette: Palette;
  lit: Lit | null;
}

export interface Renderer {
  resize(width: number, height: number, ratio: number): void;
  begin(frame: Frame): void;
  ruler(times: number[], labels: string[], height: number): void;
  busy(curve: BusyCurve, y: number, height: number): void;
  /** Draws only between `top` and `bottom` until the frame ends. */
  clip(top: number, bottom: number): void;
  separator(y: number): void;
  slice(slice: Slice, band: Band): void;
  end(): void;
}
