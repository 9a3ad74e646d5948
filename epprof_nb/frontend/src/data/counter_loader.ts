// Asks for the counters of a window where those of the whole are too coarse for it.

import type { Range } from "../base/time_scale.ts";
import { POINTS } from "./counters.ts";
import type { DataSource } from "./data_source.ts";
import type { Bundle } from "./wire_format.ts";

const SETTLE_MS = 100;
/** So much of a window more is counted on both sides, for small moves. */
const MARGIN = 0.5;

export class Recount {
  #settle: ReturnType<typeof setTimeout> | undefined;
  #request = 0;
  #have: Range | null = null;

  constructor(
    private readonly source: DataSource,
    private readonly whole: Range,
    private readonly counted: (bundle: Bundle<object>, window: Range) => void,
  ) {}

  want(view: Range, width: number): void {
    clearTimeout(this.#settle);
    if (!this.source.live || !coarse(this.whole, view, width)) return;
    if (this.#have && !coarse(this.#have, view, width) && holds(this.#have, view)) return;
    this.#settle = setTimeout(() => void this.#ask(view), SETTLE_MS);
  }

  destroy(): void {
    clearTimeout(this.#settle);
    this.#request = -1;
  }

  async #ask({ start, end }: Range): Promise<void> {
    const number = ++this.#request;
    const more = (end - start) * MARGIN;
    const window = { start: start - more, end: end + more };
    try {
      const bundle = await this.source.counters(window);
      // A later window may have been asked for meanwhile.
      if (number !== this.#request) return;
      this.#have = window;
      this.counted(bundle, window);
    } catch {
      // The coarse ones stay; the next window asks again.
    }
  }
}

/** Whether the points of `counted` lie further apart than the window's pixels. */
export function coarse(counted: Range, view: Range, width: number): boolean {
  return (counted.end - counted.start) / POINTS > (view.end - view.start) / Math.max(width, 1);
}

export function holds(outer: Range, { start, end }: Range): boolean {
  return outer.start <= start && outer.end >= end;
}
