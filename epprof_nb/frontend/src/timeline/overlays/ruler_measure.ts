// Measurement of an event's duration or of the time between two points, shown above the lanes.

import { duration } from "../../base/format.ts";
import type { Range } from "../../base/time_scale.ts";
import type { Renderer } from "../../render/renderer.ts";
import type { Geometry } from "../geometry.ts";
import type { Command } from "../input/shortcut_registry.ts";
import type { Drag, Overlay, PointerAt } from "./overlay.ts";

const GROUP = "Measure";
/** Distance in pixels at which a measurement snaps to an event's edge. */
const SNAP = 6;
const KEY = "m";

interface MeasureTargets {
  /** Event to measure: the selected one, else the one under the pointer. */
  event(): Range | null;
  geometry(): Geometry;
  /** Whether a key is down. */
  isDown(key: string): boolean;
  redraw(): void;
}

export class RulerMeasure implements Overlay {
  /** Latest measurement; the next one replaces it. */
  #now: Range | null = null;
  readonly #kept: Range[] = [];

  constructor(private readonly timeline: MeasureTargets) {}

  readonly commands: Command[] = [
    {
      keys: [KEY],
      help: "Measure the selected event, or the one under the pointer",
      group: GROUP,
      run: () => this.#mark(this.timeline.event()),
    },
    {
      keys: ["shift+m"],
      help: "Measure it and keep the previous measurements",
      group: GROUP,
      run: () => {
        if (this.#now) this.#kept.push(this.#now);
        this.#now = null;
        this.#mark(this.timeline.event());
      },
    },
    {
      keys: ["escape"],
      help: "Remove the measurements",
      group: GROUP,
      run: () => {
        if (!this.#now && this.#kept.length === 0) return false;
        this.#kept.length = 0;
        this.#mark(null);
        return true;
      },
    },
  ];

  press(at: PointerAt): Drag | null {
    if (!this.timeline.isDown(KEY)) return null;
    const before = this.#now;
    const from = this.#snapped(at);
    return {
      move: (to) => {
        const time = this.#snapped(to);
        this.#mark({ start: Math.min(from, time), end: Math.max(from, time) });
      },
      end: () => {},
      cancel: () => this.#mark(before),
    };
  }

  draw(renderer: Renderer, { height }: Geometry): void {
    const all = this.#now ? [...this.#kept, this.#now] : this.#kept;
    for (const { start, end } of all) {
      // The length is written on the ruler, where it hides no event.
      renderer.timeRange(start, end, 0, height, "measure", duration(end - start));
    }
  }

  #mark(range: Range | null): void {
    const same = range && range.start === this.#now?.start && range.end === this.#now.end;
    this.#now = same ? null : range;
    this.timeline.redraw();
  }

  /** Time under the pointer, or the nearest edge of the event there if it is close. */
  #snapped({ x, time, hit }: PointerAt): number {
    if (!hit) return time;
    const geometry = this.timeline.geometry();
    const start = hit.set.start[hit.event];
    const edges = [start, start + hit.set.dur[hit.event]];
    const far = (edge: number): number => Math.abs(geometry.x(edge) - x);
    const nearest = far(edges[0]) <= far(edges[1]) ? edges[0] : edges[1];
    return far(nearest) <= SNAP ? nearest : time;
  }
}
