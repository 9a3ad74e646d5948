// Memory in use over time, in parts that add up: the greatest sum of each point, and the least.

import { firstAbove } from "../base/binary_search.ts";
import { type Range, toTime } from "../base/time_scale.ts";
import { numbers } from "./counters.ts";
import type { ColumnBundle } from "./wire_format.ts";

export class MemoryCurve {
  /** Times of the points, ascending; values before the first are unknown. */
  readonly #t: Float64Array;
  /** Time of the greatest sum from each point to the next. */
  readonly #at: Float64Array;
  readonly #low: Float64Array;
  readonly #parts: Float64Array[];
  readonly #sum: Float64Array;

  /** Read the columns of the counter at `position` of the header's counters. */
  constructor(bundle: ColumnBundle<object>, position: number, parts: number) {
    const column = (name: string): Float64Array => numbers(bundle, position, name);
    this.#t = column("t");
    this.#at = column("at");
    this.#low = column("low");
    this.#parts = Array.from({ length: parts }, (_, i) => column(`part.${i}`));
    this.#sum = this.#t.map((_, i) => this.#parts.reduce((sum, part) => sum + part[i], 0));
  }

  /** Point of the greatest sum within each pixel of a window; -1 before the first point. */
  pixels(view: Range, width: number): Int32Array {
    const points = new Int32Array(Math.ceil(width));
    let last = firstAbove(this.#t, view.start, 0, this.#t.length) - 1;
    for (let x = 0; x < points.length; x++) {
      const [start, end] = [toTime(x, view, width), toTime(x + 1, view, width)];
      while (last + 1 < this.#t.length && this.#t[last + 1] <= start) last++;
      let most = last;
      for (; last + 1 < this.#t.length && this.#t[last + 1] < end; last++)
        if (most < 0 || this.#sum[last + 1] > this.#sum[most]) most = last + 1;
      points[x] = most;
    }
    return points;
  }

  /** Sum of the parts up to and including one, at some points. */
  upTo(part: number, points: Int32Array): Float64Array {
    return Float64Array.from(points, (point) => {
      let sum = 0;
      for (let i = 0; i <= part && point >= 0; i++) sum += this.#parts[i][point];
      return sum;
    });
  }

  /** Greatest sum within a time range: its parts and time; and the least sum. */
  greatest({ start, end }: Range): { at: number; parts: number[]; low: number; high: number } {
    const first = Math.max(firstAbove(this.#t, start, 0, this.#t.length) - 1, 0);
    let most = first;
    let low = this.#low[first] ?? 0;
    for (let i = first + 1; i < this.#t.length && this.#t[i] < end; i++) {
      if (this.#sum[i] > this.#sum[most]) most = i;
      low = Math.min(low, this.#low[i]);
    }
    // A constant sum holds at the start of the range, too, unless it begins later.
    const constant = this.#low[most] === this.#sum[most];
    const at = this.#at[most] ?? 0;
    const parts = this.#parts.map((part) => part[most] ?? 0);
    return {
      at: constant ? Math.max(at, Math.ceil(start)) : at,
      parts,
      low,
      high: this.#sum[most] ?? 0,
    };
  }
}
