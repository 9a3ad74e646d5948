// Zoom to the time range of a Shift drag.

import { duration } from "../../base/format.ts";
import type { Range } from "../../base/time_scale.ts";
import type { Viewport } from "../../base/viewport.ts";
import type { Renderer } from "../../render/renderer.ts";
import type { Geometry } from "../geometry.ts";
import type { Drag, Overlay, PointerAt } from "./overlay.ts";

export class BoxZoom implements Overlay {
  #box: Range | null = null;

  constructor(
    private readonly viewport: Viewport,
    private readonly redraw: () => void,
  ) {}

  press(at: PointerAt): Drag | null {
    if (!at.shift) return null;
    const from = this.#within(at.time);
    return {
      move: (to) => {
        const time = this.#within(to.time);
        this.#show({ start: Math.min(from, time), end: Math.max(from, time) });
      },
      end: (_, moved) => {
        const box = this.#box;
        this.#show(null);
        if (moved && box && box.end > box.start) this.viewport.animateTo(box);
      },
      cancel: () => this.#show(null),
    };
  }

  cursor(at: PointerAt): string | null {
    return at.shift ? "zoom-in" : null;
  }

  draw(renderer: Renderer, { ruler, height }: Geometry): void {
    const box = this.#box;
    if (box) {
      renderer.timeRange(box.start, box.end, ruler, height, "zoom", duration(box.end - box.start));
    }
  }

  /** Limit the box to the visible window. */
  #within(time: number): number {
    const { start, end } = this.viewport.view;
    return Math.min(Math.max(time, start), end);
  }

  #show(box: Range | null): void {
    this.#box = box;
    this.redraw();
  }
}
