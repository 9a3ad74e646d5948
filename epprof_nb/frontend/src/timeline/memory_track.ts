// Counters of memory: areas on top of each other, with the peak marked.

import { h } from "../base/dom.ts";
import { moment, size } from "../base/format.ts";
import type { MemoryCurve } from "../data/memory_curve.ts";
import type { Counter } from "../data/wire_types.ts";
import { textOn } from "../render/event_colours.ts";
import { memoryColour, memoryCss } from "../render/memory_colours.ts";
import type { Palette } from "../render/palettes.ts";
import type { Renderer } from "../render/renderer.ts";
import type { Track, View } from "./track.ts";

/** Share of the height above the greatest value, for the mark of the peak. */
const HEADROOM = 0.22;
/** Minimum height of an area with its name in it, pixels. */
const NAMED = 10;
/** Estimated width of a letter, pixels. */
const LETTER = 6.2;

/** Track of a counter of memory; `marked` if it marks the peak. */
export function memoryTrack(curve: MemoryCurve, counter: Counter, marked: boolean): Track {
  const { parts = [], peak } = counter;
  const pool = (part: number): number => (counter.what === "pools" ? part : -1);
  const colour = (palette: Palette, part: number): string =>
    memoryColour(palette, parts[part], pool(part));

  function draw(r: Renderer, frame: View, y: number, height: number): string {
    const { view, width, palette } = frame;
    const points = curve.pixels(view, width);
    const tops = parts.map((_, part) => curve.upTo(part, points));
    const most = (tops.at(-1) ?? new Float64Array(0)).reduce((a, b) => Math.max(a, b), 0);
    const max = most / (marked ? 1 - HEADROOM : 1);
    // From the uppermost area down: each covers the part that the next ones fill.
    for (let part = parts.length - 1; part >= 0; part--)
      r.area(tops[part], y, height, max, colour(palette, part));
    if (!(max > 0)) return "";
    const level = (bytes: number): number => y + height * (1 - bytes / max);
    parts.forEach((name, part) => {
      const bottom = tops[part - 1] ?? new Float64Array(points.length);
      const run = widestRun(bottom, tops[part], (NAMED * max) / height, name.length * LETTER);
      if (!run) return;
      const middle = (level(run.bottom) + level(run.top)) / 2;
      r.label(name, run.first, run.end, middle, textOn(colour(palette, part)));
    });
    if (marked && peak && peak[0] >= view.start && peak[0] < view.end)
      markPeak(r, frame, peak, level(peak[1]), y, height);
    return `0–${size(most)}`;
  }

  return {
    draw,
    describe(range) {
      const { at, parts: bytes, low, high } = curve.greatest(range);
      const list = h("dl");
      for (let part = parts.length - 1; part >= 0; part--) {
        if (!bytes[part]) continue;
        const swatch = h("i", { class: "ep-swatch" });
        swatch.style.background = memoryCss(parts[part], pool(part));
        const term = h("dt", {}, swatch, ` ${parts[part]}`);
        list.append(h("div", {}, term, h("dd", {}, size(bytes[part]))));
      }
      const span = size(low) !== size(high) ? `, at least ${size(low)} within this pixel` : "";
      return [
        h("div", { class: "ep-tip-title" }, `${size(high)} in use at ${moment(at)}`),
        `${counter.name}${span}`,
        list,
        h("div", { class: "ep-faint" }, "Click to see what holds it."),
      ];
    },
    mean: () => 0,
    valueAt: () => 0,
    greatestAt: (range) => curve.greatest(range).at,
  };
}

function markPeak(
  r: Renderer,
  { view, width }: View,
  [at, bytes]: [number, number],
  top: number,
  y: number,
  height: number,
): void {
  const x = ((at - view.start) / (view.end - view.start)) * width;
  const text = `peak ${size(bytes)}`;
  const wide = text.length * LETTER + 10;
  r.boundary(x, y, y + height);
  r.tag(text, x + wide > width ? x - wide : x, Math.min(y + 7, top));
}

interface Run {
  first: number;
  end: number;
  /** Values between which the area is in all pixels of the run. */
  bottom: number;
  top: number;
}

/** Widest run of pixels in which an area has a common band of some thickness. */
export function widestRun(
  bottom: Float64Array,
  top: Float64Array,
  thickness: number,
  least: number,
): Run | null {
  let best: Run | null = null;
  let run: Run | null = null;
  for (let x = 0; x < top.length; x++) {
    const grown: Run = {
      first: run?.first ?? x,
      end: x + 1,
      bottom: Math.max(run?.bottom ?? 0, bottom[x]),
      top: Math.min(run?.top ?? Number.POSITIVE_INFINITY, top[x]),
    };
    if (grown.top - grown.bottom >= thickness) run = grown;
    else {
      const alone = top[x] - bottom[x] >= thickness;
      run = alone ? { first: x, end: x + 1, bottom: bottom[x], top: top[x] } : null;
    }
    const wide = run ? run.end - run.first : 0;
    if (run && wide >= least && wide > (best ? best.end - best.first : 0)) best = run;
  }
  return best;
}
