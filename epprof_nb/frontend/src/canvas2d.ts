// Draws the events of a row as rectangles; cull.ts first combines what is thinner than a pixel.

import { Rects, rects } from "./cull.ts";
import { context2d } from "./dom.ts";
import { level } from "./levels.ts";
import type { Kind } from "./model.ts";
import type { Band, Frame, Stretch } from "./renderer.ts";
import {
  COPY,
  DIMMED,
  EDGE,
  edged,
  fill,
  GAP,
  HATCH,
  HATCHED_FROM,
  KINDS,
  shape,
  TONES,
  tones,
} from "./shapes.ts";
import { packed, Strip } from "./strip.ts";
import type { Palette } from "./theme.ts";

/** From this many rectangles on, a strip of pixels is faster. */
const MANY = 64;

export class Bars {
  readonly #rects = new Rects();
  readonly #strip = new Strip();
  readonly #hatch = new Map<string, CanvasPattern | null>();

  draw(
    context: CanvasRenderingContext2D,
    frame: Frame,
    ratio: number,
    slice: Stretch,
    band: Band,
  ): void {
    const { lit, view, width } = frame;
    const pixel = (view.end - view.start) / width;
    const pixels = Math.round(width * ratio);
    const toned = band.look === "op";
    rects(level(slice, pixel), view, pixels, ratio, this.#rects, toned);
    this.#paint(context, frame, ratio, band, lit ? DIMMED : 1);
    if (lit) {
      // Highlighted events are combined apart, so that a dimmed neighbour never swallows them.
      const bright = level(slice, pixel, lit[slice.set.prefix]);
      rects(bright, view, pixels, ratio, this.#rects, toned);
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
    const { length, shared, kinds } = this.#rects;
    const stripped = length - shared >= MANY;
    const plain = stripped ? shared : length;
    // One colour after the other: setting it for each rectangle takes longer than drawing it.
    for (const now of KINDS) {
      if (!(kinds & (1 << now))) continue;
      const { y, height } = shape(band, now);
      const colours = tones(fill(band, palette, now), palette.edges[now]);
      this.#fills(c, colours, ratio, y, height, now, dim, plain);
      if (stripped) this.#stretch(c, colours, ratio, y, height, now, dim);
      if (band.look === "op") this.#edges(c, palette, ratio, y, height, now, dim);
      else if (band.look === "activity" && now === COPY)
        this.#hatches(c, palette, ratio, y, height, dim);
    }
  }

  /** Draws the rectangles [0, end) of a kind one by one. */
  #fills(
    c: CanvasRenderingContext2D,
    colours: string[],
    ratio: number,
    y: number,
    height: number,
    now: Kind,
    dim: number,
    end: number,
  ): void {
    const { shared, x, width, alpha, tone, kind } = this.#rects;
    let last = -1;
    for (let i = 0; i < end; i++) {
      if (kind[i] !== now) continue;
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

  /** Draws the pixels that narrow events of a kind share. */
  #stretch(
    c: CanvasRenderingContext2D,
    colours: string[],
    ratio: number,
    y: number,
    height: number,
    now: Kind,
    dim: number,
  ): void {
    const { length, shared, x, width, alpha, tone, kind } = this.#rects;
    const strip = this.#strip;
    const values = colours.map(packed);
    strip.clear(this.#rects.pixels);
    for (let i = shared; i < length; i++) {
      if (kind[i] === now)
        strip.set(x[i], x[i] + width[i], values[tone[i] * TONES], dim * alpha[i]);
    }
    strip.draw(c, ratio, y, height);
  }

  #edges(
    c: CanvasRenderingContext2D,
    palette: Palette,
    ratio: number,
    y: number,
    height: number,
    now: Kind,
    dim: number,
  ): void {
    const { shared, x, width, alpha, kind } = this.#rects;
    c.fillStyle = palette.edges[now];
    for (let i = 0; i < shared; i++) {
      const edge = EDGE.width * edged(width[i] / ratio);
      if (kind[i] !== now || edge === 0) continue;
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
    dim: number,
  ): void {
    const pattern = this.#hatched(c, palette);
    if (!pattern) return;
    const { shared, x, width, alpha, kind } = this.#rects;
    c.fillStyle = pattern;
    for (let i = 0; i < shared; i++) {
      const wide = width[i] / ratio - GAP.gap;
      if (kind[i] !== COPY || wide < HATCHED_FROM) continue;
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
