// Loader for the counters of a window where the header's resolution is too low.

import type { Range } from "../base/time_scale.ts";
import { MAX_POINTS } from "./counters.ts";
import type { DataSource } from "./data_source.ts";
import type { Bundle } from "./wire_format.ts";

const SETTLE_MS = 100;
/** Share of the window requested in addition on both sides, for small moves. */
const MARGIN = 0.5;

export class CounterLoader {
  #settle: ReturnType<typeof setTimeout> | undefined;
  #request = 0;
  #loaded: Range | null = null;

  constructor(
    private readonly source: DataSource,
    private readonly whole: Range,
    private readonly onLoad: (bundle: Bundle<object>, window: Range) => void,
  ) {}

  request(view: Range, width: number): void {
    clearTimeout(this.#settle);
    if (!this.source.zooms || !tooCoarse(this.whole, view, width)) return;
    if (this.#loaded && !tooCoarse(this.#loaded, view, width) && contains(this.#loaded, view))
      return;
    this.#settle = setTimeout(() => void this.#fetch(view), SETTLE_MS);
  }

  destroy(): void {
    clearTimeout(this.#settle);
    this.#request = -1;
  }

  async #fetch({ start, end }: Range): Promise<void> {
    const number = ++this.#request;
    const margin = (end - start) * MARGIN;
    const window = { start: start - margin, end: end + margin };
    try {
      const bundle = await this.source.counters(window);
      // A later request may have been sent meanwhile.
      if (number !== this.#request) return;
      this.#loaded = window;
      this.onLoad(bundle, window);
    } catch {
      // Keep the header's resolution; the next move tries again.
    }
  }
}

/** Whether counter points over `loaded` are further apart than the window's pixels. */
export function tooCoarse(loaded: Range, view: Range, width: number): boolean {
  return (loaded.end - loaded.start) / MAX_POINTS > (view.end - view.start) / Math.max(width, 1);
}

export function contains(outer: Range, { start, end }: Range): boolean {
  return outer.start <= start && outer.end >= end;
}
