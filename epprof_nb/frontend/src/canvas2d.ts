// Events by Canvas2D: what is thinner than a pixel is put together first (cull.ts).

import type { Bars, Row } from "./bars.ts";
import { Rects, rects } from "./cull.ts";
import type { Frame } from "./renderer.ts";
import {
  COPY,
  DIMMED,
  EDGE,
  fill,
  GAP,
  HATCH,
  HATCHED_FROM,
  KINDS,
  opacity,
  shape,
} from "./shapes.ts";

export class Canvas2dBars implements Bars {
  readonly name = "canvas2d";
  readonly #rects = new Rects();
  readonly #hatch = new Map<string, CanvasPattern | null>();

  draw(context: CanvasRenderingContext2D, frame: Frame, _ratio: number, rows: Row[]): boolean {
    const { lit, view, width } = frame;
    for (const row of rows) {
      rects(row.slice, view, width, this.#rects);
      this.#paint(context, frame, row, lit ? DIMMED : 1);
      if (!lit) continue;
      // What is lit is put together apart, so that a dim neighbour never swallows it.
      rects(row.slice, view, width, this.#rects, lit[row.slice.set.prefix]);
      this.#paint(context, frame, row, 1);
    }
    context.globalAlpha = 1;
    return true;
  }

  destroy(): void {
    this.#hatch.clear();
  }

  #paint(c: CanvasRenderingContext2D, { palette }: Frame, row: Row, alpha: number): void {
    const { length, x, width, cover, kind } = this.#rects;
    const { band } = row;
    // One colour after the other: setting it anew for each rectangle costs more than drawing it.
    for (const now of KINDS) {
      const { y, height } = shape(band, now);
      const hatched = now === COPY && band.look === "activity";
      const pattern = hatched ? this.#hatched(c, palette.background) : null;
      const colour = fill(band, palette, now);
      c.fillStyle = colour;
      for (let i = 0; i < length; i++) {
        if (kind[i] !== now) continue;
        c.globalAlpha = alpha * opacity(cover[i]);
        const wide = width[i] > GAP.from ? width[i] - GAP.gap : width[i];
        c.fillRect(x[i], y, wide, height);
        if (!pattern || wide < HATCHED_FROM) continue;
        c.fillStyle = pattern;
        c.fillRect(x[i], y, wide, height);
        c.fillStyle = colour;
      }
      if (band.look !== "op") continue;
      c.fillStyle = palette.edges[now];
      for (let i = 0; i < length; i++) {
        if (kind[i] !== now) continue;
        c.globalAlpha = alpha * opacity(cover[i]);
        c.fillRect(x[i], y, Math.min(width[i], EDGE), height);
      }
    }
  }

  #hatched(c: CanvasRenderingContext2D, colour: string): CanvasPattern | null {
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
