// Shading of the part of the view that is not loaded yet, so that it is not mistaken for idle time.

import type { Range } from "../../base/time_scale.ts";
import type { Renderer } from "../../render/renderer.ts";
import type { Geometry } from "../geometry.ts";
import type { Overlay } from "./overlay.ts";

export class UnloadedOverlay implements Overlay {
  /** Time range that is loaded. */
  loaded: Range;

  constructor(private readonly whole: Range) {
    this.loaded = whole;
  }

  draw(renderer: Renderer, { view, head, height }: Geometry): void {
    const { whole, loaded } = this;
    const shade = (from: number, to: number): void => {
      if (from < to) renderer.timeRange(from, to, head, height, "missing");
    };
    shade(Math.max(view.start, whole.start), Math.min(view.end, loaded.start));
    shade(Math.max(view.start, loaded.end), Math.min(view.end, whole.end));
  }
}
