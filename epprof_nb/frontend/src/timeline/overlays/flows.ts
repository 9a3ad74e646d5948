// Flow lines: from the API calls or ops that launched to what ran on the device.

import { thinned } from "../../base/sampling.ts";
import type { EventRef } from "../../data/model.ts";
import type { Place, Renderer } from "../../render/renderer.ts";
import type { Geometry } from "../geometry.ts";
import type { PlacedLane } from "../lanes.ts";
import type { Overlay } from "./overlay.ts";

/** Lines that are drawn at most: more could not be told apart. */
const DRAWN = 400;

export class Flows implements Overlay {
  #pairs: [from: EventRef, to: EventRef][] = [];

  constructor(private readonly changed: () => void) {}

  set(pairs: [from: EventRef, to: EventRef][]): void {
    this.#pairs = [...pairs].sort(([, a], [, b]) => a.start - b.start);
    this.changed();
  }

  draw(renderer: Renderer, geometry: Geometry): void {
    if (this.#pairs.length === 0) return;
    const { start, end } = geometry.view;
    const near = this.#pairs.filter(
      ([from, to]) => from.start <= end && to.start + to.dur >= start,
    );
    const lines = places(thinned(near, DRAWN), geometry);
    if (lines.length === 0) return;
    renderer.clip(geometry.ruler, geometry.height);
    renderer.lines(lines);
    renderer.clip(0, geometry.height);
  }
}

/** Where lines begin and end; those of lanes that are not shown are left out. */
export function places(
  pairs: [from: EventRef, to: EventRef][],
  geometry: Geometry,
): [Place, Place][] {
  const lanes = new Map([...geometry.lanes, ...geometry.sticky].map((lane) => [lane.index, lane]));
  const lines: [Place, Place][] = [];
  for (const [from, to] of pairs) {
    const above = lanes.get(from.lane);
    const below = lanes.get(to.lane);
    if (!above || !below) continue;
    lines.push([
      [from.start, onCanvas(above, foot(above, from.level), geometry)],
      [to.start, onCanvas(below, bandOf(below, to.level).y, geometry)],
    ]);
  }
  return lines;
}

/** Where a row of a lane lies, whether any of its events is drawn now or not. */
export function bandOf(placed: PlacedLane, level: number): { y: number; height: number } {
  const { y, height, folded, lane, bands } = placed;
  const band = bands.find(({ slice }) => slice.row === level)?.band;
  if (band) return band;
  const rows = lane?.rows ?? 0;
  if (folded || rows === 0) return { y, height };
  if (level < 0) return { y: y + height, height: 0 };
  return { y: y + (level * height) / rows, height: height / rows };
}

function foot(lane: PlacedLane, level: number): number {
  const { y, height } = bandOf(lane, level);
  return y + height - 1;
}

/** Where a row is on the canvas; what is scrolled out of sight above is at the lanes' edge. */
function onCanvas(lane: PlacedLane, placed: number, geometry: Geometry): number {
  const y = placed + geometry.offset(lane);
  return lane.sticky ? y : Math.max(y, geometry.head);
}
