// Time to pixels and back; zoom and pan within the profile's range.

export interface Range {
  start: number;
  end: number;
}

/** No window is shorter: below this a double no longer tells neighbouring nanoseconds apart. */
const SHORTEST_NS = 20;

export function toPixel(time: number, view: Range, width: number): number {
  return ((time - view.start) / (view.end - view.start)) * width;
}

export function toTime(x: number, view: Range, width: number): number {
  return view.start + (x / width) * (view.end - view.start);
}

/** Keeps a window within `whole`: shifted back inside, cut only if it is longer. */
export function clamp(view: Range, whole: Range): Range {
  const length = Math.min(Math.max(view.end - view.start, SHORTEST_NS), whole.end - whole.start);
  const start = Math.min(Math.max(view.start, whole.start), whole.end - length);
  return { start, end: start + length };
}

/** Zooms by `factor` (below 1 shows less time) so that the time under `x` stays there. */
export function zoom(view: Range, whole: Range, factor: number, x: number, width: number): Range {
  const at = toTime(x, view, width);
  const least = Math.min(SHORTEST_NS, whole.end - whole.start);
  const length = Math.max((view.end - view.start) * factor, least);
  const start = at - (x / width) * length;
  return clamp({ start, end: start + length }, whole);
}

export function pan(view: Range, whole: Range, pixels: number, width: number): Range {
  const shift = (pixels / width) * (view.end - view.start);
  return clamp({ start: view.start + shift, end: view.end + shift }, whole);
}

/** The stretch with a margin around it, as a place to zoom to. */
export function around(stretch: Range, whole: Range): Range {
  const length = Math.max(stretch.end - stretch.start, SHORTEST_NS * 5);
  const margin = length * 0.08;
  return clamp({ start: stretch.start - margin, end: stretch.start + length + margin }, whole);
}

/** Share of the window that an event takes at least, and at most, when it is gone to. */
const SEEN = { least: 0.004, most: 0.6, aim: 0.12 };

/**
 * The window in which to see an event, as near as may be to the one there is: the same where it
 * can be seen well, moved where it lies outside, zoomed only where it would be too small or large.
 */
export function toward(view: Range, width: number, event: Range): Range {
  const length = view.end - view.start;
  const size = Math.max(event.end - event.start, SHORTEST_NS / 5);
  const least = Math.min(SEEN.least, 3 / Math.max(width, 1));
  const seen = size >= length * least && size <= length * SEEN.most;
  if (seen && event.start >= view.start && event.end <= view.end) return view;
  const wanted = seen ? length : Math.max(size / SEEN.aim, SHORTEST_NS);
  const middle = (event.start + event.end) / 2;
  return { start: middle - wanted / 2, end: middle + wanted / 2 };
}

/** Round times for a ruler: a step of 1, 2 or 5 times a power of ten, about `room` px apart. */
export function ticks(view: Range, width: number, room = 90): { step: number; times: number[] } {
  const rough = ((view.end - view.start) / Math.max(width, 1)) * room;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = ([1, 2, 5, 10].find((m) => m * power >= rough) ?? 10) * power;
  const times: number[] = [];
  for (let i = Math.ceil(view.start / step); i * step <= view.end; i++) times.push(i * step);
  return { step, times };
}
