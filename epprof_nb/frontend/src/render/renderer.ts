// Interface of the renderer of a timeline. The timeline knows times, lanes and the selection; the
// renderer (canvas_renderer.ts) knows pixels. Calls between begin() and end() draw in order, later
// ones on top.

import type { Range } from "../base/time_scale.ts";
import type { Highlight, RowSlice } from "../data/events.ts";
import type { Palette } from "./palettes.ts";

/** Position of a row and look of its events. */
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

/** Point in a frame: a time, and a height in pixels. */
export type Place = [time: number, y: number];

/** Purpose of a marked time range. */
export type RangeStyle = "selected" | "measure" | "zoom" | "missing";

export interface Renderer {
  resize(width: number, height: number, ratio: number): void;
  begin(frame: Frame): void;
  ruler(times: number[], labels: string[], height: number): void;
  /** Draw a filled strip with one value per pixel; `max` is at full height. */
  counter(values: ArrayLike<number>, y: number, height: number, max: number, colour: string): void;
  /** Draw an area with one height per pixel, as `counter` does, but opaque. */
  area(values: ArrayLike<number>, y: number, height: number, max: number, colour: string): void;
  /** Draw a text centred between two pixels, if it fits. Returns whether it does. */
  label(text: string, x0: number, x1: number, y: number, colour: string): boolean;
  /** Clip to the area between `top` and `bottom`, until the next call. */
  clip(top: number, bottom: number): void;
  separator(y: number): void;
  row(slice: RowSlice, band: Band): void;
  /** Draw flow lines as curves; those side by side as one ribbon. */
  flows(flows: [from: Place, to: Place][]): void;
  /** Draw a time range between two heights, with a text if it fits. */
  timeRange(t0: number, t1: number, y0: number, y1: number, style: RangeStyle, text?: string): void;
  /** Draw a vertical line at pixel `x` between two heights. */
  boundary(x: number, y0: number, y1: number): void;
  /** Draw the label of a boundary, from pixel `x` on, centred at height `y`. */
  tag(text: string, x: number, y: number): void;
  end(): void;
  /** Release all resources; the renderer cannot be used afterwards. */
  destroy(): void;
}
