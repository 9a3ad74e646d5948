// Flow lines from API calls or ops to the activities they launched.

import { sampleEvenly } from "../../base/evenly_spread.ts";
import type { EventRef } from "../../data/wire_types.ts";
import type { Place, Renderer } from "../../render/renderer.ts";
import type { Geometry } from "../geometry.ts";
import type { PlacedLane } from "../lanes.ts";
import type { Overlay } from "./overlay.ts";

/** Maximum number of lines; more could not be distinguished. */
const DRAWN = 400;

export class FlowOverlay implements Overlay {
  #pairs: [from: EventRef, to: EventRef][] = [];

  constructor(private readonly redraw: () => void) {}

  set(pairs: [from: EventRef, to: EventRef][]): void {
    this.#pairs = [...pairs].sort(([, a], [, b]) => a.start - b.start);
    this.redraw();
  }

  draw(renderer: Renderer, geometry: Geometry): void {
    if (this.#pairs.length === 0) return;
    const { start, end } = geometry.view;
    const near = this.#pairs.filter(
      ([from, to]) => from.start <= end && to.start + to.dur >= start,
    );
    const lines = flowPoints(sampleEvenly(near, DRAWN), geometry);
    if (lines.length === 0) return;
    renderer.clip(geometry.ruler, geometry.height);
    renderer.flows(lines);
    renderer.clip(0, geometry.height);
  }
}

/** Start and end points of the lines; lanes that are not shown are omitted. */
function flowPoints(pairs: [from: EventRef, to: EventRef][], geometry: Geometry): [Place, Place][] {
  const lanes = new Map([...geometry.lanes, ...geometry.sticky].map((lane) => [lane.index, lane]));
  const lines: [Place, Place][] = [];
  for (const [from, to] of pairs) {
    const above = lanes.get(from.lane);
    const below = lanes.get(to.lane);
    if (!above || !below) continue;
    lines.push([
      [from.start, onCanvas(above, bottomOf(above, from.level), geometry)],
      [to.start, onCanvas(below, bandOf(below, to.level).y, geometry)],
    ]);
  }
  return lines;
}

/** Position of a row of a lane, whether or not its events are loaded. */
export function bandOf(placed: PlacedLane, level: number): { y: number; height: number } {
  const { y, height, folded, lane, bands } = placed;
  const band = bands.find(({ slice }) => slice.row === level)?.band;
  if (band) return band;
  const rows = lane?.rows ?? 0;
  if (folded || rows === 0) return { y, height };
  if (level < 0) return { y: y + height, height: 0 };
  return { y: y + (level * height) / rows, height: height / rows };
}

function bottomOf(lane: PlacedLane, level: number): number {
  const { y, height } = bandOf(lane, level);
  return y + height - 1;
}

/** Canvas position of a row; rows scrolled out at the top are moved to the lanes' edge. */
function onCanvas(lane: PlacedLane, placed: number, geometry: Geometry): number {
  const y = placed + geometry.offset(lane);
  return lane.sticky ? y : Math.max(y, geometry.head);
}
