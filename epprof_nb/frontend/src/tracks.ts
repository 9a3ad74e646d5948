// How a counter is drawn and read: its strip, its scale, and its value under the pointer.

import {
  extremes,
  type Level,
  level,
  rate,
  type Sum,
  sum,
  type Track,
  utilisation,
} from "./counters.ts";
import type { Bundle } from "./decode.ts";
import { count, percent, size } from "./format.ts";
import type { Renderer } from "./renderer.ts";
import { type Range, toTime } from "./scale.ts";
import type { Palette } from "./theme.ts";

interface View {
  view: Range;
  width: number;
  palette: Palette;
}

export class Tracks {
  readonly #sums = new Map<number, Sum>();
  readonly #levels = new Map<number, Level>();

  constructor(private readonly tracks: Track[]) {}

  /** The columns have come. */
  use(bundle: Bundle<object>): void {
    this.tracks.forEach(({ what }, i) => {
      if (what === "launches") this.#levels.set(i, level(bundle, i));
      else this.#sums.set(i, sum(bundle, i));
    });
  }

  /** Share of a stretch for which the devices were busy, the mean of all. */
  busy(stretch: Range): number {
    let total = 0;
    let devices = 0;
    for (const [position, curve] of this.#sums) {
      if (this.tracks[position].what !== "busy") continue;
      total += utilisation(curve, stretch);
      devices++;
    }
    return devices ? total / devices : 0;
  }

  /** Draws a counter between `y` and `y + height`; tells the scale that it is drawn to. */
  draw(r: Renderer, position: number, frame: View, y: number, height: number): string {
    const { view, width, palette } = frame;
    const curve = this.#sums.get(position);
    if (curve && this.tracks[position].what === "busy") {
      r.busy(curve, y, height);
      return "";
    }
    const steps = this.#levels.get(position);
    const t = pixels(view, width);
    if (steps) {
      const most = Float64Array.from(t, (_, i) => extremes(steps, pixel(view, width, i))[1]);
      const least = Float64Array.from(t, (_, i) => extremes(steps, pixel(view, width, i))[0]);
      const max = roundUp(most.reduce((a, b) => Math.max(a, b), 0));
      const look = { shape: "step", max } as const;
      // What was always outstanding within a pixel is stronger than what was at times.
      r.counter({ t, value: most }, y, height, { ...look, colour: palette.api });
      r.counter({ t, value: least }, y, height, { ...look, colour: palette.faint, least: true });
      return max > 0 ? `0–${count(max)}` : "";
    }
    if (!curve) return "";
    const rates = Float64Array.from(t, (_, i) => rate(curve, pixel(view, width, i)));
    const max = roundUp(rates.reduce((a, b) => Math.max(a, b), 0) * 1e9);
    r.counter({ t, value: rates }, y, height, {
      shape: "step",
      max: max / 1e9,
      colour: palette.kinds[2],
    });
    return max > 0 ? `0–${size(max).replace(/\.0+(?= )/, "")}/s` : "";
  }

  /** What a counter says about a stretch. */
  tell(position: number, stretch: Range, whole: Range): string {
    const { name } = this.tracks[position];
    const steps = this.#levels.get(position);
    if (steps) {
      const [low, high] = extremes(steps, stretch);
      const what = high === 1 ? "launch" : "launches";
      return `${name}: ${low === high ? "" : `${count(low)} to `}${count(high)} outstanding ${what}`;
    }
    const curve = this.#sums.get(position);
    if (!curve) return `${name}: being counted`;
    if (this.tracks[position].what === "busy")
      return `${name}: busy ${percent(utilisation(curve, stretch))} here`;
    const until = { start: whole.start, end: stretch.end };
    const moved = rate(curve, until) * (until.end - until.start);
    return `${name}: copies ${size(rate(curve, stretch) * 1e9)}/s here, ${size(moved)} so far`;
  }
}

function pixel(view: Range, width: number, x: number): Range {
  return { start: toTime(x, view, width), end: toTime(x + 1, view, width) };
}

function pixels(view: Range, width: number): Float64Array {
  // A step that begins just after a pixel's edge belongs to that pixel alone.
  return Float64Array.from({ length: Math.ceil(width) }, (_, x) => toTime(x + 0.001, view, width));
}

/** The next of 1, 2, 5, 10, 20, ...: a scale that stays while the view moves a little. */
export function roundUp(value: number): number {
  if (!(value > 0)) return 0;
  const power = 10 ** Math.floor(Math.log10(value) + 1e-9);
  const lead = [1, 2, 5, 10].find((m) => m * power >= value * (1 - 1e-9)) ?? 10;
  return power < 1 ? lead / Math.round(1 / power) : lead * power;
}
