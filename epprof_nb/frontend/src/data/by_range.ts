// Breakdown of a time range, as Python's `by_range` defines it.

import type { Range } from "../base/time_scale.ts";

/** Breakdown of a time range; mirrors the Python result. */
export interface RangeBreakdown {
  start: number;
  end: number;
  /** `unknown`: time in which work may have run whose records are missing. */
  devices: { device: number; name: string; busy: number; unknown?: number }[];
  device_ns: number;
  kernels: number;
  copies: number;
  sets: number;
  bytes: number;
  ops: RankedTotals;
  names: RankedTotals;
  /** Estimated parts, since the page merges events; undefined if everything is exact. */
  estimated?: {
    /** The part with exact numbers; null if there is none. */
    exact: Range | null;
    /** Length of the bins whose sums the page has, ns; null if it has none. */
    bin: number | null;
  };
}

export interface RankedTotals {
  rows: [name: string, count: number, ns: number][];
  total: number;
}
