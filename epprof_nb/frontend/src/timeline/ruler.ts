// Labels of the ruler: times since the profile's start, or relative to a base when zoomed in.

import type { Range } from "../base/time_scale.ts";

/** With more decimals than this, labels are relative to a base. */
const DIGITS = 3;

interface RulerLabels {
  /** Base time of the labels; null if they are absolute. */
  base: string | null;
  labels: string[];
}

/** Labels of ticks that are `step` apart. */
export function rulerLabels(times: number[], step: number, view: Range): RulerLabels {
  const [scale, unit] = unitOf(Math.max(Math.abs(view.start), Math.abs(view.end)));
  const digits = digitsOf(step, scale);
  if (digits <= DIGITS)
    return { base: null, labels: times.map((time) => formatTime(time, scale, unit, digits)) };
  const round = 10 ** Math.ceil(Math.log10(view.end - view.start) - 1e-9);
  const base = Math.floor(view.start / round) * round;
  const [small, smallUnit] = unitOf(view.end - base);
  const few = digitsOf(step, small);
  return {
    base: formatTime(base, scale, unit, digitsOf(round, scale)),
    labels: times.map((time) => `+${formatTime(time - base, small, smallUnit, few)}`),
  };
}

/** Estimated width of a letter, and distance of a label from its tick, pixels. */
const LETTER = 6.5;
const OFFSET = 5;

/** Labels of the ticks at pixels `xs`, empty where they would overlap a reserved part. */
export function withoutReserved(
  labels: string[],
  xs: number[],
  reserved: readonly [left: number, right: number][],
): string[] {
  return labels.map((text, i) => {
    const left = xs[i] + OFFSET;
    const right = left + text.length * LETTER;
    return reserved.some(([from, to]) => left < to && right > from) ? "" : text;
  });
}

function unitOf(time: number): [scale: number, unit: string] {
  if (time >= 1e9) return [1e9, "s"];
  if (time >= 1e6) return [1e6, "ms"];
  return time >= 1e3 ? [1e3, "µs"] : [1, "ns"];
}

function digitsOf(step: number, scale: number): number {
  return Math.max(0, -Math.floor(Math.log10(step / scale) + 1e-9));
}

function formatTime(time: number, scale: number, unit: string, digits: number): string {
  return `${(time / scale).toFixed(digits)} ${unit}`;
}
