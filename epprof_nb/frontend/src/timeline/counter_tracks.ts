// How a counter is drawn and read: its strip, its scale, and its value under the pointer.

import { count, percent, size } from "../base/format.ts";
import type { Range } from "../base/time_scale.ts";
import { contains } from "../data/counter_loader.ts";
import {
  extremes,
  type Level,
  level,
  ranges,
  rate,
  rates,
  type Sum,
  sum,
  utilisation,
} from "../data/counters.ts";
import type { Track } from "../data/model.ts";
import type { Bundle } from "../data/wire_format.ts";
import type { Renderer } from "../render/renderer.ts";
import type { Palette } from "../render/theme.ts";

interface Curves {
  sums: Map<number, Sum>;
  levels: Map<number, Level>;
}

interface View {
  view: Range;
  width: number;
  palette: Palette;
}

export class CounterTracks {
  #whole: Curves = { sums: new Map(), levels: new Map() };
  /** Finer curves of a window. */
  #part: (Curves & { window: Range }) | null = null;

  constructor(private readonly tracks: Track[]) {}

  /** The columns have come: of a window, or of all. */
  use(bundle: Bundle<object>, window?: Range): void {
    const curves: Curves = { sums: new Map(), levels: new Map() };
    this.tracks.forEach(({ what }, i) => {
      if (what === "launches") curves.levels.set(i, level(bundle, i));
      else curves.sums.set(i, sum(bundle, i));
    });
    if (window) this.#part = { ...curves, window };
    else this.#whole = curves;
  }

  /** The curves to read a stretch from. */
  #of(stretch: Range): Curves {
    return this.#part && contains(this.#part.window, stretch) ? this.#part : this.#whole;
  }

  /** Share of a stretch for which the devices were busy, the mean of all. */
  busy(stretch: Range): number {
    let total = 0;
    let devices = 0;
    for (const [position, curve] of this.#whole.sums) {
      if (this.tracks[position].what !== "busy") continue;
      total += utilisation(curve, stretch);
      devices++;
    }
    return devices ? total / devices : 0;
  }

  /** Draws a counter between `y` and `y + height`; tells the scale that it is drawn to. */
  draw(r: Renderer, position: number, frame: View, y: number, height: number): string {
    const { view, width, palette } = frame;
    const { sums, levels } = this.#of(view);
    const curve = sums.get(position);
    if (curve && this.tracks[position].what === "busy") {
      const shares = rates(curve, view, width).map((share) => Math.min(Math.max(share, 0), 1));
      r.counter(shares, y, height, 1, palette.busy);
      return "";
    }
    const steps = levels.get(position);
    if (steps) {
      const { least, most } = ranges(steps, view, width);
      const max = roundUp(most.reduce((a, b) => Math.max(a, b), 0));
      // What was always outstanding within a pixel is stronger than what was at times.
      r.counter(most, y, height, max, palette.api);
      r.counter(least, y, height, max, palette.faint);
      return max > 0 ? `0–${count(max)}` : "";
    }
    if (!curve) return "";
    const moved = rates(curve, view, width);
    const max = roundUp(moved.reduce((a, b) => Math.max(a, b), 0) * 1e9);
    r.counter(moved, y, height, max / 1e9, palette.kinds[2]);
    return max > 0 ? `0–${size(max).replace(/\.0+(?= )/, "")}/s` : "";
  }

  /** What a counter says about a stretch. */
  describe(position: number, stretch: Range, whole: Range): string {
    const { name } = this.tracks[position];
    const { sums, levels } = this.#of(stretch);
    const steps = levels.get(position);
    if (steps) {
      const [low, high] = extremes(steps, stretch);
      const what = high === 1 ? "launch" : "launches";
      return `${name}: ${low === high ? "" : `${count(low)} to `}${count(high)} queued ${what}`;
    }
    const curve = sums.get(position);
    if (!curve) return `${name}: being counted`;
    if (this.tracks[position].what === "busy")
      return `${name}: busy ${percent(utilisation(curve, stretch))} here`;
    const before = { start: whole.start, end: stretch.end };
    const all = this.#whole.sums.get(position) ?? curve;
    const moved = rate(all, before) * (before.end - before.start);
    return `${name}: copies ${size(rate(curve, stretch) * 1e9)}/s here, ${size(moved)} so far`;
  }
}

/** The next of 1, 2, 5, 10, 20, ...: a scale that stays while the view moves a little. */
export function roundUp(value: number): number {
  if (!(value > 0)) return 0;
  const power = 10 ** Math.floor(Math.log10(value) + 1e-9);
  const lead = [1, 2, 5, 10].find((m) => m * power >= value * (1 - 1e-9)) ?? 10;
  return power < 1 ? lead / Math.round(1 / power) : lead * power;
}
