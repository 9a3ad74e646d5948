// What is looked at and not sent yet is veiled: empty, it would look idle.

import type { Range } from "../../base/time_scale.ts";
import type { Renderer } from "../../render/renderer.ts";
import type { Geometry } from "../geometry.ts";
import type { Overlay } from "./overlay.ts";

export class Missing implements Overlay {
  /** What was sent. */
  sent: Range;

  constructor(private readonly whole: Range) {
    this.sent = whole;
  }

  draw(renderer: Renderer, { view, head, height }: Geometry): void {
    const { whole, sent } = this;
    const veil = (from: number, to: number): void => {
      if (from < to) renderer.band(from, to, head, height, "missing");
    };
    veil(Math.max(view.start, whole.start), Math.min(view.end, sent.start));
    veil(Math.max(view.start, sent.end), Math.min(view.end, whole.end));
  }
}
