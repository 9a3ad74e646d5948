// Interface of a counter's data in the timeline.

import type { Range } from "../base/time_scale.ts";
import type { Palette } from "../render/palettes.ts";
import type { Renderer } from "../render/renderer.ts";

export interface View {
  view: Range;
  width: number;
  palette: Palette;
}

/** One counter's data. */
export interface Track {
  /** Draw the counter between `y` and `y + height`. Returns the text of its scale. */
  draw(r: Renderer, frame: View, y: number, height: number): string;
  /** Tooltip for a time range; `total` is the counter's value at its end in the whole profile. */
  describe(range: Range, total: number): string | (Node | string)[];
  /** Mean over a time range; 0 for counters without a meaningful mean. */
  mean(range: Range): number;
  /** Cumulative value up to a time; 0 for counters that are not cumulative. */
  valueAt(time: number): number;
  /** Time of the greatest value in a time range; counters of memory have it. */
  greatestAt?(range: Range): number;
}
