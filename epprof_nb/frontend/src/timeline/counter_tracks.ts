// Counters of the timeline: one entry per type with its labels, drawing and tooltip.

import { count, percent, rate, size } from "../base/format.ts";
import type { Range } from "../base/time_scale.ts";
import { contains } from "../data/counter_loader.ts";
import {
  cumulativeCounter,
  extremes,
  meanRate,
  pixelRanges,
  pixelRates,
  rangeCounter,
  unknownTime,
  utilisation,
  valueAt,
} from "../data/counters.ts";
import { KIND } from "../data/kinds.ts";
import { MemoryCurve } from "../data/memory_curve.ts";
import type { Bundle } from "../data/wire_format.ts";
import type { Counter } from "../data/wire_types.ts";
import type { Renderer } from "../render/renderer.ts";
import { memoryTrack } from "./memory_track.ts";
import type { Track, View } from "./track.ts";

interface CounterType {
  label(device: string): string;
  title: string;
  height: number;
  /** Whether it heads the other counters of its device, which it can fold away. */
  main: boolean;
  load(bundle: Bundle<object>, position: number, counter: Counter): Track;
}

export const COUNTER_TYPES: Record<Counter["what"], CounterType> = {
  busy: {
    label: (device) => `${device} busy`,
    title: "share of time the device was busy",
    height: 30,
    main: true,
    load(bundle, position) {
      const curve = cumulativeCounter(bundle, position);
      return {
        draw(r, { view, width, palette }, y, height) {
          const shares = pixelRates(curve, view, width).map((share) =>
            Math.min(Math.max(share, 0), 1),
          );
          r.counter(shares, y, height, 1, palette.busy);
          return "";
        },
        describe: (range) => `busy ${percent(utilisation(curve, range))} here`,
        mean: (range) => utilisation(curve, range),
        valueAt: (time) => valueAt(curve, time),
      };
    },
  },
  launches: {
    label: () => "queued",
    title: "launches submitted and not finished",
    height: 18,
    main: false,
    load(bundle, position) {
      const curve = rangeCounter(bundle, position);
      return {
        draw(r, { view, width, palette }, y, height) {
          const { least, most } = pixelRanges(curve, view, width);
          const max = roundUp(most.reduce((a, b) => Math.max(a, b), 0));
          // The minimum within a pixel is drawn stronger than the maximum.
          r.counter(most, y, height, max, palette.api);
          r.counter(least, y, height, max, palette.faint);
          return max > 0 ? `0–${count(max)}` : "";
        },
        describe(range) {
          const [low, high] = extremes(curve, range);
          const launches = high === 1 ? "launch" : "launches";
          return `${low === high ? "" : `${count(low)} to `}${count(high)} queued ${launches}`;
        },
        mean: () => 0,
        valueAt: () => 0,
      };
    },
  },
  copied: {
    label: () => "copies",
    title: "bytes copied per second",
    height: 18,
    main: false,
    load(bundle, position) {
      const curve = cumulativeCounter(bundle, position);
      return {
        draw(r, { view, width, palette }, y, height) {
          const rates = pixelRates(curve, view, width);
          const max = roundUp(rates.reduce((a, b) => Math.max(a, b), 0) * 1e9);
          r.counter(rates, y, height, max / 1e9, palette.kinds[KIND.memcpy]);
          return max > 0 ? `0–${rate(max).replace(/\.0+(?= )/, "")}` : "";
        },
        describe: (range, total) =>
          `copies ${rate(meanRate(curve, range) * 1e9)} here, ${size(total)} so far`,
        mean: () => 0,
        valueAt: (time) => valueAt(curve, time),
      };
    },
  },
  memory: {
    label: () => "memory",
    title: "memory in use, by category; click to see what holds it",
    height: 84,
    main: false,
    load: (bundle, position, counter) =>
      memoryTrack(new MemoryCurve(bundle, position, counter.parts?.length ?? 0), counter, true),
  },
  pools: {
    label: () => "pools",
    title: "memory in use, by pool; click to see what holds it",
    height: 26,
    main: false,
    load: (bundle, position, counter) =>
      memoryTrack(new MemoryCurve(bundle, position, counter.parts?.length ?? 0), counter, false),
  },
};

/** The counters of a profile, at the resolution of the whole profile and of the window in view. */
export class CounterTracks {
  #whole: Track[] = [];
  #window: { tracks: Track[]; range: Range } | null = null;

  constructor(private readonly counters: Counter[]) {}

  /** Use the loaded columns of a window, or of the whole profile without a `range`. */
  use(bundle: Bundle<object>, range?: Range): void {
    const tracks = this.counters.map((counter, i) =>
      COUNTER_TYPES[counter.what].load(bundle, i, counter),
    );
    if (range) this.#window = { tracks, range };
    else this.#whole = tracks;
  }

  /** The tracks with the best resolution for a time range. */
  #for(range: Range): Track[] {
    const window = this.#window;
    return window && contains(window.range, range) ? window.tracks : this.#whole;
  }

  /** Busy share of a time range, averaged over the devices. */
  busy(range: Range): number {
    const devices = this.#whole.filter((_, i) => this.counters[i].what === "busy");
    const total = devices.reduce((sum, track) => sum + track.mean(range), 0);
    return devices.length ? total / devices.length : 0;
  }

  /** Draw a counter between `y` and `y + height`. Returns the text of its scale. */
  draw(r: Renderer, position: number, frame: View, y: number, height: number): string {
    return this.#for(frame.view)[position]?.draw(r, frame, y, height) ?? "";
  }

  /** Tooltip of a counter for a time range. */
  describe(position: number, range: Range): string | (Node | string)[] {
    const counter = this.counters[position];
    const { name } = counter;
    const track = this.#for(range)[position];
    if (!track) return `${name}: loading`;
    // Time without records is neither busy nor idle.
    if (unknownTime(counter, range) > 0) return `${name}: records are missing here`;
    const total = this.#whole[position]?.valueAt(range.end) ?? 0;
    const told = track.describe(range, total);
    return typeof told === "string" ? `${name}: ${told}` : told;
  }

  /** Time of the greatest value of a counter of memory in a time range. */
  greatestAt(position: number, range: Range): number | undefined {
    return this.#for(range)[position]?.greatestAt?.(range);
  }
}

/** Round up to 1, 2, 5, 10, 20, ..., so that the scale stays while the view moves a little. */
export function roundUp(value: number): number {
  if (!(value > 0)) return 0;
  const power = 10 ** Math.floor(Math.log10(value) + 1e-9);
  const lead = [1, 2, 5, 10].find((m) => m * power >= value * (1 - 1e-9)) ?? 10;
  return power < 1 ? lead / Math.round(1 / power) : lead * power;
}
