// Time at which the holders of memory are shown: picked in a lane of memory by a click.

import type { Range } from "../../base/time_scale.ts";
import type { Counter } from "../../data/wire_types.ts";
import type { Renderer } from "../../render/renderer.ts";
import type { Geometry } from "../geometry.ts";
import type { PlacedLane } from "../lanes.ts";
import type { Overlay, PointerAt } from "./overlay.ts";

/** Half the width of a pixel. */
const HALF = 0.5;

export interface Picked {
  at: number;
  counter: Counter;
}

export class MemoryMark implements Overlay {
  #picked: Picked | null = null;

  constructor(
    private readonly counters: readonly Counter[],
    private readonly geometry: () => Geometry,
    /** Time of the most memory in a time range, of a counter. */
    private readonly greatestAt: (counter: number, range: Range) => number | undefined,
    private readonly onPick: (picked: Picked | null) => void,
  ) {}

  get picked(): Picked | null {
    return this.#picked;
  }

  set(picked: Picked | null): void {
    this.#picked = picked;
    this.onPick(picked);
  }

  /** Pick the time under the pointer in a lane of memory, else the peak of the first lane. */
  pick(pointed: PointerAt | null): boolean {
    if (pointed && this.click(pointed)) return true;
    const counter = this.counters.find(({ peak }) => peak);
    if (!counter?.peak) return false;
    this.set({ at: counter.peak[0], counter });
    return true;
  }

  click(at: PointerAt): boolean {
    const row = this.#rowAt(at);
    const geometry = this.geometry();
    const range = { start: geometry.time(at.x - HALF), end: geometry.time(at.x + HALF) };
    const time = row && this.greatestAt(row.counter as number, range);
    if (!row || time === null || time === undefined) return false;
    this.set({ at: time, counter: this.counters[row.counter as number] });
    return true;
  }

  cursor(at: PointerAt): string | null {
    return this.#rowAt(at) ? "pointer" : null;
  }

  draw(renderer: Renderer, geometry: Geometry): void {
    if (!this.#picked) return;
    const { at } = this.#picked;
    const half = geometry.time(HALF) - geometry.time(0);
    const rows = [...geometry.sticky, ...geometry.inView].filter((row) => this.#isMemory(row));
    for (const row of rows) {
      const y = row.y + geometry.offset(row);
      if (y + row.height > (row.sticky ? 0 : geometry.head))
        renderer.timeRange(at - half, at + half, y, y + row.height, "selected");
    }
  }

  #rowAt(at: PointerAt): PlacedLane | null {
    if (at.zone === "ruler") return null;
    const row = this.geometry().rowAt(at.y);
    return row && this.#isMemory(row) ? row : null;
  }

  #isMemory({ counter }: PlacedLane): boolean {
    return counter !== null && this.counters[counter].parts !== undefined;
  }
}
