// Renderer on a 2D canvas.

import { context2d } from "../base/dom.ts";
import type { RowSlice } from "../data/events.ts";
import { EventBars } from "./canvas2d.ts";
import * as marks from "./decorations.ts";
import { EventLabels, FONT } from "./event_labels.ts";
import { moreContrast } from "./palettes.ts";
import type { Band, Frame, Place, RangeStyle, Renderer } from "./renderer.ts";

export class CanvasRenderer implements Renderer {
  readonly #context: CanvasRenderingContext2D;
  readonly #bars = new EventBars();
  readonly #names: EventLabels;
  #frame!: Frame;
  #ratio = 1;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    /** Called to draw again when the reader switches to or from high contrast. */
    private readonly redraw: () => void,
  ) {
    // Every frame fills the whole canvas, so the browser need not blend it with the page.
    this.#context = context2d(canvas, { alpha: false });
    this.#names = new EventLabels(this.#context);
    moreContrast().addEventListener("change", redraw);
  }

  resize(width: number, height: number, ratio: number): void {
    this.canvas.width = Math.max(Math.round(width * ratio), 1);
    this.canvas.height = Math.max(Math.round(height * ratio), 1);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.#ratio = ratio;
  }

  begin(frame: Frame): void {
    this.#frame = frame;
    const c = this.#context;
    // In device pixels: at a ratio of 1.5 the frame may end within the last row or column.
    c.resetTransform();
    c.fillStyle = frame.palette.background;
    c.fillRect(0, 0, this.canvas.width, this.canvas.height);
    c.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    c.font = FONT;
    c.textBaseline = "middle";
    c.save();
  }

  end(): void {
    this.#context.restore();
  }

  clip(top: number, bottom: number): void {
    const c = this.#context;
    c.restore();
    c.save();
    c.beginPath();
    c.rect(0, top, this.#frame.width, bottom - top);
    c.clip();
  }

  ruler(times: number[], labels: string[], height: number): void {
    marks.ruler(this.#context, this.#frame, times, labels, height);
  }

  counter(values: ArrayLike<number>, y: number, height: number, max: number, colour: string): void {
    marks.counter(this.#context, this.#frame, values, y, height, max, colour);
  }

  area(values: ArrayLike<number>, y: number, height: number, max: number, colour: string): void {
    marks.counter(this.#context, this.#frame, values, y, height, max, colour, 1);
  }

  label(text: string, x0: number, x1: number, y: number, colour: string): boolean {
    return marks.label(this.#context, text, x0, x1, y, colour);
  }

  separator(y: number): void {
    this.#context.fillStyle = this.#frame.palette.line;
    this.#context.fillRect(0, Math.round(y), this.#frame.width, 1);
  }

  row(slice: RowSlice, band: Band): void {
    this.#bars.draw(this.#context, this.#frame, this.#ratio, slice, band);
    this.#names.draw(slice, band, this.#frame);
  }

  flows(flows: [from: Place, to: Place][]): void {
    marks.flows(this.#context, this.#frame, flows);
  }

  timeRange(
    t0: number,
    t1: number,
    y0: number,
    y1: number,
    style: RangeStyle,
    text?: string,
  ): void {
    marks.range(this.#context, this.#frame, t0, t1, y0, y1, style, text);
  }

  boundary(x: number, y0: number, y1: number): void {
    marks.boundary(this.#context, this.#frame, x, y0, y1);
  }

  tag(text: string, x: number, y: number): void {
    marks.tag(this.#context, this.#frame, text, x, y);
  }

  destroy(): void {
    moreContrast().removeEventListener("change", this.redraw);
    // A canvas without pixels holds no memory.
    this.canvas.width = 0;
    this.canvas.height = 0;
  }
}
