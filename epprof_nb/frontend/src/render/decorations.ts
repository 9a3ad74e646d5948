// Everything drawn besides events: ruler, counters, flow lines, marked time ranges.

import { toPixel } from "../base/time_scale.ts";
import type { Frame, Place, RangeStyle } from "./renderer.ts";
import { bundle } from "./ribbons.ts";

type Context = CanvasRenderingContext2D;

const STRIP_ALPHA = 0.75;

export function ruler(
  c: Context,
  { palette, view, width, height: bottom }: Frame,
  times: number[],
  labels: string[],
  height: number,
): void {
  times.forEach((time, i) => {
    const x = Math.round(toPixel(time, view, width));
    c.fillStyle = palette.line;
    c.fillRect(x, height - 5, 1, bottom);
    c.fillStyle = palette.faint;
    const textWidth = c.measureText(labels[i]).width;
    if (x + textWidth + 4 < width) c.fillText(labels[i], x + 4.5, height / 2);
  });
}

/** Draw a strip with one value per pixel, scaled to `max`. */
export function counter(
  c: Context,
  { palette, width }: Frame,
  values: ArrayLike<number>,
  y: number,
  height: number,
  max: number,
  colour: string,
  alpha = STRIP_ALPHA,
): void {
  c.fillStyle = palette.line;
  c.fillRect(0, y + height - 1, width, 1);
  if (!(max > 0)) return;
  c.fillStyle = colour;
  c.globalAlpha = alpha;
  c.beginPath();
  c.moveTo(0, y + height);
  let top = y + height;
  for (let x = 0; x < values.length; x++) {
    const next = y + height * (1 - Math.min(Math.max(values[x] / max, 0), 1));
    if (next === top) continue;
    c.lineTo(x, top);
    c.lineTo(x, next);
    top = next;
  }
  c.lineTo(values.length, top);
  c.lineTo(values.length, y + height);
  c.closePath();
  c.fill();
  c.globalAlpha = 1;
}

/** Horizontal reach of a flow line's control points, pixels. */
const LEVEL = { least: 12, most: 90 };
/** Distance below a row's upper edge at which lines arrive, above its labels. */
const INTO = 3;
/** From this number on, lines are fainter than their events, and ribbons have no edges. */
const MANY = 24;
const FEW_OPACITY = { line: 0.9, ribbon: 0.16, edge: 0.5 };
const MANY_OPACITY = { line: 0.5, ribbon: 0.1, edge: 0 };

/** Draw flow lines from the lower edge of a row to the upper edge of another. */
export function flows(
  c: Context,
  { palette, view, width }: Frame,
  pairs: readonly [from: Place, to: Place][],
): void {
  // Limit positions far outside: the curve's shape does not matter there, but huge coordinates
  // would.
  const x = (time: number): number =>
    Math.min(Math.max(toPixel(time, view, width), -width), 2 * width);
  const { lines, ribbons } = bundle(
    pairs.map(([[t0, y0], [t1, y1]]) => ({ x0: x(t0), y0, x1: x(t1), y1 })),
  );
  const few = lines.length + ribbons.length < MANY;
  const opacity = few ? FEW_OPACITY : MANY_OPACITY;
  c.fillStyle = palette.faint;
  c.strokeStyle = palette.faint;
  c.lineWidth = 1;
  for (const ribbon of ribbons) {
    const { left0, right0, y0, left1, right1, y1 } = ribbon;
    const area = new Path2D();
    area.moveTo(left0, y0);
    curve(area, left0, y0, left1, y1);
    area.lineTo(right1, y1);
    curve(area, right1, y1, right0, y0, -1);
    c.globalAlpha = opacity.ribbon;
    c.fill(area);
    c.globalAlpha = opacity.edge;
    c.stroke(area);
  }
  // A halo in the background colour separates the lines from the events they cross.
  const path = new Path2D();
  const ends = new Path2D();
  for (const { x0, y0, x1, y1: edge } of lines) {
    const y1 = edge + INTO;
    path.moveTo(x0, y0);
    curve(path, x0, y0, x1, y1);
    ends.moveTo(x1, y1);
    ends.lineTo(x1 - 6, y1 - 3);
    ends.lineTo(x1 - 6, y1 + 3);
    ends.closePath();
  }
  c.strokeStyle = palette.background;
  c.lineWidth = 3;
  c.globalAlpha = 0.7;
  if (few) c.stroke(path);
  c.strokeStyle = few ? palette.select : palette.faint;
  c.fillStyle = c.strokeStyle;
  c.lineWidth = 1.25;
  c.globalAlpha = opacity.line;
  c.stroke(path);
  c.fill(ends);
  c.globalAlpha = 1;
}

/** Append a curve that leaves and arrives horizontally; `way` -1 draws it backwards. */
function curve(
  path: Path2D,
  x0: number,
  y0: number,
  x1: number,
  y1: number,
  way: 1 | -1 = 1,
): void {
  const level = way * Math.min(Math.max(Math.abs(x1 - x0) / 2, LEVEL.least), LEVEL.most);
  path.bezierCurveTo(x0 + level, y0, x1 - level, y1, x1, y1);
}

export function range(
  c: Context,
  { palette, view, width }: Frame,
  t0: number,
  t1: number,
  y0: number,
  y1: number,
  style: RangeStyle,
  text?: string,
): void {
  const clamp = (x: number): number => Math.min(Math.max(x, -2), width + 2);
  const left = clamp(toPixel(Math.min(t0, t1), view, width));
  const right = clamp(toPixel(Math.max(t0, t1), view, width));
  if (right < 0 || left > width) return;
  const wide = Math.max(right - left, 1);
  const top = Math.min(y0, y1);
  const height = Math.abs(y1 - y0);
  if (style === "missing") {
    c.fillStyle = palette.line;
    c.globalAlpha = 0.6;
    c.fillRect(left, top, wide, height);
    c.globalAlpha = 1;
    return;
  }
  c.fillStyle = palette.accent;
  c.globalAlpha = style === "measure" ? 0.08 : 0.13;
  c.fillRect(left, top, wide, height);
  c.globalAlpha = 1;
  c.strokeStyle = palette.accent;
  c.lineWidth = 1;
  if (style === "zoom") c.strokeRect(left + 0.5, top + 0.5, Math.max(wide - 1, 0), height - 1);
  else {
    c.fillRect(Math.round(left), top, 1, height);
    c.fillRect(Math.round(left + wide) - 1, top, 1, height);
  }
  if (!text) return;
  const textWidth = c.measureText(text).width;
  if (textWidth + 12 > width) return;
  // Between the edges if it fits, else beside them, always inside the window.
  const middle = (Math.max(left, 0) + Math.min(left + wide, width)) / 2;
  const from = Math.min(Math.max(middle - textWidth / 2, 6), width - textWidth - 6);
  c.fillStyle = palette.accent;
  c.beginPath();
  c.roundRect(from - 5, top + 3, textWidth + 10, 17, 3);
  c.fill();
  c.fillStyle = palette.onAccent;
  c.fillText(text, from, top + 12);
}

export function boundary(c: Context, { palette }: Frame, x: number, y0: number, y1: number): void {
  c.fillStyle = palette.faint;
  c.fillRect(Math.round(x), y0, 1, y1 - y0);
}

export function tag(c: Context, { palette }: Frame, text: string, x: number, y: number): void {
  c.fillStyle = palette.text;
  c.fillText(text, x + 4.5, y);
}

/** Space around a text between two pixels. */
const LABEL_SPACE = 8;

/** Draw a text centred between two pixels, if it fits. */
export function label(
  c: Context,
  text: string,
  x0: number,
  x1: number,
  y: number,
  colour: string,
): boolean {
  const { width } = c.measureText(text);
  if (width + LABEL_SPACE > x1 - x0) return false;
  c.fillStyle = colour;
  c.fillText(text, (x0 + x1 - width) / 2, y);
  return true;
}
