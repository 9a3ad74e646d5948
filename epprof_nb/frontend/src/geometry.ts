// Where things lie on the canvas in one frame: time to pixels, events to boxes.

import type { Hit } from "./hit.ts";
import { type PlacedLane, slicesAt } from "./lanes.ts";
import type { Slice } from "./model.ts";
import type { Band } from "./renderer.ts";
import { type Range, toPixel, toTime } from "./scale.ts";
import type { Palette } from "./theme.ts";

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

  /** Canvas y of a lane or band, given its place among the lanes. */
  y(placed: number): number {
    return this.head + placed - this.scroll;
  }

  slicesAt(y: number): Slice[] {
    return y < this.head ? [] : slicesAt(this.lanes, y - this.head + this.scroll);
  }

  /** Where an event's row is drawn, also beyond the edges; null where it is folded away. */
  band(at: Hit): Band | null {
    for (const lane of this.lanes) {
      for (const { slice, band } of lane.bands) {
        if (slice.set === at.set && at.event >= slice.first && at.event < slice.end) return band;
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
    return { x, y: this.y(band.y), width: end - x, height: band.height };
  }
}
