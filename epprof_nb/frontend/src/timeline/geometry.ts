// Where things lie on the canvas in one frame: time to pixels, events to boxes.

import { type Range, toPixel, toTime } from "../base/time_scale.ts";
import type { Hit, LaneSlice } from "../data/model.ts";
import type { Band } from "../render/renderer.ts";
import type { Palette } from "../render/theme.ts";
import { type PlacedLane, rowAt, slicesAt } from "./lanes.ts";

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Placing {
  view: Range;
  width: number;
  height: number;
  palette: Palette;
  /** Height of the ruler, and of all that stands above the lanes and does not scroll. */
  ruler: number;
  head: number;
  /** How far the lanes are scrolled up. */
  scroll: number;
  /** Rows that stay on top, below the ruler, and those that scroll. */
  sticky: PlacedLane[];
  lanes: PlacedLane[];
}

export class Geometry implements Placing {
  readonly view!: Range;
  readonly width!: number;
  readonly height!: number;
  readonly palette!: Palette;
  readonly ruler!: number;
  readonly head!: number;
  readonly scroll!: number;
  readonly sticky!: PlacedLane[];
  readonly lanes!: PlacedLane[];

  constructor(placing: Placing) {
    Object.assign(this, placing);
  }

  x(time: number): number {
    return toPixel(time, this.view, this.width);
  }

  time(x: number): number {
    return toTime(x, this.view, this.width);
  }

  /** How far down the canvas a row's own coordinates begin. */
  offset(row: PlacedLane): number {
    return row.sticky ? this.ruler : this.head - this.scroll;
  }

  /** The scrolled rows of which something is in sight. */
  get inView(): PlacedLane[] {
    return this.lanes.filter((row) => {
      const top = row.y + this.offset(row);
      return top < this.height && top + row.height >= this.head;
    });
  }

  rowAt(y: number): PlacedLane | null {
    if (y < this.head) return rowAt(this.sticky, y - this.ruler);
    return rowAt(this.lanes, y - this.head + this.scroll);
  }

  slicesAt(y: number): LaneSlice[] {
    if (y < this.head) return slicesAt(this.sticky, y - this.ruler);
    return slicesAt(this.lanes, y - this.head + this.scroll);
  }

  /** Where an event's row is drawn, also beyond the edges; null where it is folded away. */
  band(at: Hit): Band | null {
    for (const row of [...this.sticky, ...this.lanes]) {
      for (const { slice, band } of row.bands) {
        if (slice.set === at.set && at.event >= slice.first && at.event < slice.end)
          return { ...band, y: band.y + this.offset(row) };
      }
    }
    return null;
  }

  /** An event's box on the canvas, also beyond the edges; null where it is folded away. */
  box(at: Hit): Box | null {
    const band = this.band(at);
    if (!band) return null;
    const x = this.x(at.set.start[at.event]);
    const end = this.x(at.set.start[at.event] + at.set.dur[at.event]);
    return { x, y: band.y, width: end - x, height: band.height };
  }
}
