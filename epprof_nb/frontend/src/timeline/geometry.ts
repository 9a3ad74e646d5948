// Geometry of one frame: times to pixels, events to boxes.

import { type Range, toPixel, toTime } from "../base/time_scale.ts";
import type { Hit, LaneSlice } from "../data/events.ts";
import type { Palette } from "../render/palettes.ts";
import type { Band } from "../render/renderer.ts";
import { type PlacedLane, rowAt, slicesAt } from "./lanes.ts";

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

interface GeometryFields {
  view: Range;
  width: number;
  height: number;
  palette: Palette;
  /** Height of the ruler, and of everything above the scrolling lanes. */
  ruler: number;
  head: number;
  /** Scroll position of the lanes. */
  scroll: number;
  /** Rows fixed below the ruler, and rows that scroll. */
  sticky: PlacedLane[];
  lanes: PlacedLane[];
}

export class Geometry implements GeometryFields {
  readonly view!: Range;
  readonly width!: number;
  readonly height!: number;
  readonly palette!: Palette;
  readonly ruler!: number;
  readonly head!: number;
  readonly scroll!: number;
  readonly sticky!: PlacedLane[];
  readonly lanes!: PlacedLane[];

  constructor(placing: GeometryFields) {
    Object.assign(this, placing);
  }

  x(time: number): number {
    return toPixel(time, this.view, this.width);
  }

  time(x: number): number {
    return toTime(x, this.view, this.width);
  }

  /** Canvas position of the origin of a row's coordinates. */
  offset(row: PlacedLane): number {
    return row.sticky ? this.ruler : this.head - this.scroll;
  }

  /** Scrolling rows that are at least partly visible. */
  get inView(): PlacedLane[] {
    return this.lanes.filter((row) => {
      const top = row.y + this.offset(row);
      return top < this.height && top + row.height >= this.head;
    });
  }

  /** Number of scrolling rows that are not fully above the lower edge. */
  get cutOff(): number {
    return this.lanes.filter((row) => row.y + row.height + this.offset(row) > this.height).length;
  }

  rowAt(y: number): PlacedLane | null {
    if (y < this.head) return rowAt(this.sticky, y - this.ruler);
    return rowAt(this.lanes, y - this.head + this.scroll);
  }

  slicesAt(y: number): LaneSlice[] {
    if (y < this.head) return slicesAt(this.sticky, y - this.ruler);
    return slicesAt(this.lanes, y - this.head + this.scroll);
  }

  /** Band of an event's row, which may lie outside the canvas; null if it is folded away. */
  band(at: Hit): Band | null {
    for (const row of [...this.sticky, ...this.lanes]) {
      for (const { slice, band } of row.bands) {
        if (slice.set === at.set && at.event >= slice.first && at.event < slice.end)
          return { ...band, y: band.y + this.offset(row) };
      }
    }
    return null;
  }

  /** Box of an event, which may lie outside the canvas; null if it is folded away. */
  box(at: Hit): Box | null {
    const band = this.band(at);
    if (!band) return null;
    const x = this.x(at.set.start[at.event]);
    const end = this.x(at.set.start[at.event] + at.set.dur[at.event]);
    return { x, y: band.y, width: end - x, height: band.height };
  }
}
