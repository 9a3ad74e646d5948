// Conversion between time and pixels; zoom and pan within the profile's range.

export interface Range {
  start: number;
  end: number;
}

/** Shortest window: below it a double cannot distinguish neighbouring nanoseconds. */
const SHORTEST_NS = 20;

export function toPixel(time: number, view: Range, width: number): number {
  return ((time - view.start) / (view.end - view.start)) * width;
}

export function toTime(x: number, view: Range, width: number): number {
  return view.start + (x / width) * (view.end - view.start);
}

/** Move a window into `whole`; shorten it only if it is longer. */
export function clamp(view: Range, whole: Range): Range {
  const length = Math.min(Math.max(view.end - view.start, SHORTEST_NS), whole.end - whole.start);
  const start = Math.min(Math.max(view.start, whole.start), whole.end - length);
  return { start, end: start + length };
}

/** Zoom by `factor` (below 1 shows less time) so that the time under `x` stays there. */
export function zoom(view: Range, whole: Range, factor: number, x: number, width: number): Range {
  const at = toTime(x, view, width);
  const shortest = Math.min(SHORTEST_NS, whole.end - whole.start);
  const length = Math.max((view.end - view.start) * factor, shortest);
  const start = at - (x / width) * length;
  return clamp({ start, end: start + length }, whole);
}

export function pan(view: Range, whole: Range, pixels: number, width: number): Range {
  const shift = (pixels / width) * (view.end - view.start);
  return clamp({ start: view.start + shift, end: view.end + shift }, whole);
}

/** Time range with a margin around it, as a zoom target. */
export function withContext(range: Range, whole: Range): Range {
  const length = Math.max(range.end - range.start, SHORTEST_NS * 5);
  const margin = length * 0.08;
  return clamp({ start: range.start - margin, end: range.start + length + margin }, whole);
}

/** Bounds of the share of the window an event should take, and the share to zoom to. */
const VISIBLE = { min: 0.004, max: 0.6, target: 0.12 };

/**
 * Window close to `view` that shows an event well: the same if the event is visible, moved if it
 * lies outside, zoomed only if it would be too small or too large.
 */
export function bringIntoView(view: Range, width: number, event: Range): Range {
  const length = view.end - view.start;
  const size = Math.max(event.end - event.start, SHORTEST_NS / 5);
  const shortest = Math.min(VISIBLE.min, 3 / Math.max(width, 1));
  const fits = size >= length * shortest && size <= length * VISIBLE.max;
  if (fits && event.start >= view.start && event.end <= view.end) return view;
  const newLength = fits ? length : Math.max(size / VISIBLE.target, SHORTEST_NS);
  const middle = (event.start + event.end) / 2;
  return { start: middle - newLength / 2, end: middle + newLength / 2 };
}

/** Round tick times: a step of 1, 2 or 5 times a power of ten, about `room` px apart. */
export function ticks(view: Range, width: number, room = 90): { step: number; times: number[] } {
  const rough = ((view.end - view.start) / Math.max(width, 1)) * room;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = ([1, 2, 5, 10].find((m) => m * power >= rough) ?? 10) * power;
  const times: number[] = [];
  for (let i = Math.ceil(view.start / step); i * step <= view.end; i++) times.push(i * step);
  return { step, times };
}
