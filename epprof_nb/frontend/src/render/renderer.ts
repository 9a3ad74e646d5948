// The drawing surface of a timeline. The timeline knows times, lanes and the selection; the renderer
// (canvas_renderer.ts) knows pixels. Calls between begin() and end() draw in order, later ones on top.

import type { Range } from "../base/time_scale.ts";
import type { Highlight, RowSlice } from "../data/model.ts";
import type { Palette } from "./theme.ts";

/** Where a row lies and how its events look. */
export interface Band {
  y: number;
  height: number;
  look: "op" | "api" | "activity" | "foot";
}

export interface Frame {
  view: Range;
  width: number;
  height: number;
  palette: Palette;
  highlight: Highlight | null;
}

/** A place in a frame: a time, and a height in pixels. */
export type Place = [time: number, y: number];

/** What a stretch of time is marked for. */
export type RangeStyle = "selected" | "measure" | "zoom" | "missing";

export interface Renderer {
  resize(width: number, height: number, ratio: number): void;
  begin(frame: Frame): void;
  ruler(times: number[], labels: string[], height: number): void;
  /** A filled strip of one value a pixel; `max` is at full height. */
  counter(values: ArrayLike<number>, y: number, height: number, max: number, colour: string): void;
  /** Draws only between `top` and `bottom`, until told otherwise. */
  clip(top: number, bottom: number): void;
  separator(y: number): void;
  slice(slice: RowSlice, band: Band): void;
  /** Flow lines from place to place, as curves; those side by side as one ribbon. */
  lines(flows: [from: Place, to: Place][]): void;
  /** A stretch of time between two heights, with a text on it where there is room. */
  band(t0: number, t1: number, y0: number, y1: number, style: RangeStyle, text?: string): void;
  end(): void;
  /** Frees what is held; nothing can be drawn afterwards. */
  destroy(): void;
}
