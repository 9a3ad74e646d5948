// Drawing of a row's events as rectangles; narrow_events.ts first combines those thinner than a
// pixel.

import { context2d } from "../base/dom.ts";
import type { RowSlice } from "../data/events.ts";
import { KIND } from "../data/kinds.ts";
import { coloursOf, kindOf, TONES, tones } from "./event_colours.ts";
import { DIMMED, EDGE, edgeShare, GAP, HATCH, HATCHED_FROM, shape } from "./event_style.ts";
import { mipLevel } from "./mipmap.ts";
import { buildVisibleRects, VisibleRects } from "./narrow_events.ts";
import type { Palette } from "./palettes.ts";
import { PixelRow, packed } from "./pixel_row.ts";
import type { Band, Frame } from "./renderer.ts";

/** Minimum number of rectangles for which a row of pixels is faster. */
const MANY = 64;

export class EventBars {
  readonly #rects = new VisibleRects();
  readonly #pixelRow = new PixelRow();
  readonly #hatch = new Map<string, CanvasPattern | null>();

  draw(
    context: CanvasRenderingContext2D,
    frame: Frame,
    ratio: number,
    slice: RowSlice,
    band: Band,
  ): void {
    const { highlight, view, width } = frame;
    const pixel = (view.end - view.start) / width;
    const pixels = Math.round(width * ratio);
    const toned = band.look === "op";
    buildVisibleRects(mipLevel(slice, pixel), view, pixels, ratio, this.#rects, toned);
    this.#paint(context, frame, ratio, band, highlight ? DIMMED : 1);
    if (highlight) {
      // Combine highlighted events separately, so that none is merged with a dimmed neighbour.
      const bright = mipLevel(slice, pixel, highlight[slice.set.prefix]);
      buildVisibleRects(bright, view, pixels, ratio, this.#rects, toned);
      this.#paint(context, frame, ratio, band, 1);
    }
    context.globalAlpha = 1;
  }

  #paint(
    c: CanvasRenderingContext2D,
    { palette }: Frame,
    ratio: number,
    band: Band,
    dim: number,
  ): void {
    const { length, firstShared: shared, codes } = this.#rects;
    const stripped = length - shared >= MANY;
    const plain = stripped ? shared : length;
    // Draw by colour: changing it for each rectangle costs more than drawing it.
    for (const now of codes) {
      const kind = kindOf(now);
      const { y, height } = shape(band, kind);
      const { fill, edge } = coloursOf(band, palette, now);
      const colours = tones(fill, edge);
      this.#fills(c, colours, ratio, y, height, now, dim, plain);
      if (stripped) this.#drawPixelRow(c, colours, ratio, y, height, now, dim);
      if (band.look === "op") this.#edges(c, edge, ratio, y, height, now, dim);
      else if (band.look === "activity" && kind === KIND.memcpy)
        this.#hatches(c, palette, ratio, y, height, now, dim);
    }
  }

  /** Draw the rectangles [0, end) of a kind one by one. */
  #fills(
    c: CanvasRenderingContext2D,
    colours: string[],
    ratio: number,
    y: number,
    height: number,
    now: number,
    dim: number,
    end: number,
  ): void {
    const { firstShared: shared, x, width, alpha, tone, code } = this.#rects;
    let last = -1;
    for (let i = 0; i < end; i++) {
      if (code[i] !== now) continue;
      const step = tone[i] * TONES;
      if (step !== last) {
        c.fillStyle = colours[step];
        last = step;
      }
      c.globalAlpha = dim * alpha[i];
      const gap = i < shared && width[i] / ratio > GAP.from ? GAP.gap : 0;
      c.fillRect(x[i] / ratio, y, width[i] / ratio - gap, height);
    }
  }

  /** Draw the pixels that narrow events of a kind share. */
  #drawPixelRow(
    c: CanvasRenderingContext2D,
    colours: string[],
    ratio: number,
    y: number,
    height: number,
    now: number,
    dim: number,
  ): void {
    const { length, firstShared: shared, x, width, alpha, tone, code } = this.#rects;
    const row = this.#pixelRow;
    const values = colours.map(packed);
    row.clear(this.#rects.pixels);
    for (let i = shared; i < length; i++) {
      if (code[i] === now) row.set(x[i], x[i] + width[i], values[tone[i] * TONES], dim * alpha[i]);
    }
    row.draw(c, ratio, y, height);
  }

  #edges(
    c: CanvasRenderingContext2D,
    colour: string,
    ratio: number,
    y: number,
    height: number,
    now: number,
    dim: number,
  ): void {
    const { firstShared: shared, x, width, alpha, code } = this.#rects;
    c.fillStyle = colour;
    for (let i = 0; i < shared; i++) {
      const edge = EDGE.width * edgeShare(width[i] / ratio);
      if (code[i] !== now || edge === 0) continue;
      c.globalAlpha = dim * alpha[i];
      c.fillRect(x[i] / ratio, y, edge, height);
    }
  }

  #hatches(
    c: CanvasRenderingContext2D,
    palette: Palette,
    ratio: number,
    y: number,
    height: number,
    now: number,
    dim: number,
  ): void {
    const pattern = this.#hatched(c, palette);
    if (!pattern) return;
    const { firstShared: shared, x, width, alpha, code } = this.#rects;
    c.fillStyle = pattern;
    for (let i = 0; i < shared; i++) {
      const wide = width[i] / ratio - GAP.gap;
      if (code[i] !== now || wide < HATCHED_FROM) continue;
      c.globalAlpha = dim * alpha[i];
      c.fillRect(x[i] / ratio, y, wide, height);
    }
  }

  #hatched(c: CanvasRenderingContext2D, { background: colour }: Palette): CanvasPattern | null {
    const known = this.#hatch.get(colour);
    if (known !== undefined) return known;
    const { period, line, alpha } = HATCH;
    const tile = document.createElement("canvas");
    tile.width = period;
    tile.height = period;
    const t = context2d(tile);
    t.strokeStyle = colour;
    t.globalAlpha = alpha;
    t.lineWidth = line * Math.SQRT1_2;
    t.beginPath();
    for (const shift of [-period, 0, period]) {
      t.moveTo(shift - 1, period + 1);
      t.lineTo(shift + period + 1, -1);
    }
    t.stroke();
    const pattern = c.createPattern(tile, "repeat");
    this.#hatch.set(colour, pattern);
    return pattern;
  }
}
