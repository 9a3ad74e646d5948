// Flow lines: from the API calls or ops that launched to what ran on the device.

import type { Geometry } from "./geometry.ts";
import type { PlacedLane } from "./lanes.ts";
import type { Overlay } from "./overlay.ts";
import type { Place, Renderer } from "./renderer.ts";
import type { Ref } from "./wanted.ts";

export class Flows implements Overlay {
  #pairs: [from: Ref, to: Ref][] = [];

  constructor(private readonly changed: () => void) {}

  set(pairs: [from: Ref, to: Ref][]): void {
    this.#pairs = pairs;
    this.changed();
  }

  draw(renderer: Renderer, geometry: Geometry): void {
    if (this.#pairs.length === 0) return;
    const lines = places(this.#pairs, geometry);
    if (lines.length === 0) return;
    renderer.clip(geometry.head, geometry.height);
    renderer.lines(lines);
    renderer.clip(0, geometry.height);
  }
}

/** Where lines begin and end; those of lanes that are not shown are left out. */
export function places(pairs: [from: Ref, to: Ref][], geometry: Geometry): [Place, Place][] {
  const lanes = new Map(geometry.lanes.map((lane) => [lane.index, lane]));
  const lines: [Place, Place][] = [];
  for (const [from, to] of pairs) {
    const above = lanes.get(from.lane);
    const below = lanes.get(to.lane);
    if (!above || !below) continue;
    lines.push([
      [from.start, geometry.y(middle(above, from.level))],
      [to.start, geometry.y(middle(below, to.level))],
    ]);
  }
  return lines;
}

/** The middle of a row of a lane, whether any of its events is drawn now or not. */
export function middle({ y, height, folded, lane, bands }: PlacedLane, level: number): number {
  const band = bands.find(({ slice }) => slice.row === level)?.band;
  if (band) return band.y + band.height / 2;
  if (folded || lane.rows === 0) return y + height / 2;
  if (level < 0) return y + height;
  return y + ((level + 0.5) * height) / lane.rows;
}
