// Events by Canvas2D: what is thinner than a pixel is put together first (cull.ts).

import type { Bars, Row } from "./bars.ts";
import { Rects, rects } from "./cull.ts";
import { level } from "./levels.ts";
import type { Frame } from "./renderer.ts";
import { COPY, DIMMED, EDGE, fill, GAP, HATCH, HATCHED_FROM, KINDS, shape } from "./shapes.ts";
import type { Palette } from "./theme.ts";

export class Canvas2dBars implements Bars {
  readonly name = "canvas2d";
  readonly #rects = new Rects();
  readonly #hatch = new Map<string, CanvasPattern | null>();

  draw(context: CanvasRenderingContext2D, frame: Frame, ratio: number, rows: Row[]): boolean {
    const { lit, view, width } = frame;
    const pixel = (view.end - view.start) / width;
    const pixels = Math.round(width * ratio);
    for (const row of rows) {
      rects(level(row.slice, pixel), view, pixels, ratio, this.#rects);
      this.#paint(context, frame, ratio, row, lit ? DIMMED : 1);
      if (!lit) continue;
      // What is lit is put together apart, so that a dim neighbour never swallows it.
      const bright = level(row.slice, pixel, lit[row.slice.set.prefix]);
      rects(bright, view, pixels, ratio, this.#rects);
      this.#paint(context, frame, ratio, row, 1);
    }
    context.globalAlpha = 1;
    return true;
  }

  destroy(): void {
    this.#hatch.clear();
  }

  #paint(
    c: CanvasRenderingContext2D,
    { palette }: Frame,
    ratio: number,
    { band }: Row,
    dim: number,
  ): void {
    const { length, shared, kinds, x, width, alpha, kind } = this.#rects;
    const edged = band.look === "op";
    // One colour after the other: setting it anew for each rectangle costs more than drawing it.
    for (const now of KINDS) {
      if (!(kinds & (1 << now))) continue;
      const { y, height } = shape(band, now);
      c.fillStyle = fill(band, palette, now);
      // What is narrow of ops is all edge.
      for (let i = 0; i < (edged ? shared : length); i++) {
        if (kind[i] !== now) continue;
        c.globalAlpha = dim * alpha[i];
        const gap = i < shared && width[i] / ratio > GAP.from ? GAP.gap : 0;
        c.fillRect(x[i] / ratio, y, width[i] / ratio - gap, height);
      }
      const pattern = now === COPY && band.look === "activity" && this.#hatched(c, palette);
      const second = pattern || (edged && palette.edges[now]);
      if (!second) continue;
      c.fillStyle = second;
      for (let i = 0; i < (edged ? length : shared); i++) {
        if (kind[i] !== now) continue;
        c.globalAlpha = dim * alpha[i];
        const wide = width[i] / ratio;
        if (!edged && wide - GAP.gap < HATCHED_FROM) continue;
        const part = !edged ? wide - GAP.gap : i < shared ? Math.min(wide, EDGE) : wide;
        c.fillRect(x[i] / ratio, y, part, height);
      }
    }
  }

  #hatched(c: CanvasRenderingContext2D, { background: colour }: Palette): CanvasPattern | null {
    const known = this.#hatch.get(colour);
    if (known !== undefined) return known;
    const { period, line, alpha } = HATCH;
    const tile = document.createElement("canvas");
    tile.width = period;
    tile.height = period;
    const t = tile.getContext("2d");
    if (!t) return null;
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
