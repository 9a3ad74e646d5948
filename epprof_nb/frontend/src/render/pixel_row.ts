// Row of pixels, drawn as one image stretched to the height of its bars. Thousands of rectangles
// that are each about a pixel wide take several times as long.

import { context2d, h } from "../base/dom.ts";
import { rgb } from "./palettes.ts";

/** An opacity below this changes no byte of a colour. */
const INVISIBLE = 1 / 512;

export class PixelRow {
  // Written by the CPU for every row: on a GPU each write would be a round trip.
  readonly #context = context2d(h("canvas", {}), { willReadFrequently: true });
  #image = new ImageData(1, 1);
  #pixels = new Uint32Array(this.#image.data.buffer);
  #from = 0;
  #to = 0;

  /** Make all pixels of a row `width` device pixels wide transparent. */
  clear(width: number): void {
    if (this.#image.width === width) this.#pixels.fill(0, this.#from, this.#to);
    else {
      this.#context.canvas.width = width;
      this.#context.canvas.height = 1;
      this.#image = new ImageData(width, 1);
      this.#pixels = new Uint32Array(this.#image.data.buffer);
    }
    this.#from = width;
    this.#to = 0;
  }

  /** Set pixels [from, to) to a packed colour with an opacity. */
  set(from: number, to: number, colour: number, alpha: number): void {
    const value = (Math.round(alpha * 255) << 24) | colour;
    for (let x = from; x < to; x++) this.#pixels[x] = value;
    this.#from = Math.min(this.#from, from);
    this.#to = Math.max(this.#to, to);
  }

  /** Draw the row between two heights in CSS pixels. */
  draw(context: CanvasRenderingContext2D, ratio: number, y: number, height: number): void {
    const from = this.#from;
    const width = this.#to - from;
    if (width <= 0) return;
    this.#context.putImageData(this.#image, 0, 0, from, 0, width, 1);
    context.imageSmoothingEnabled = false;
    const rows = (top: number, tall: number, share: number): void => {
      if (tall <= 0 || share < INVISIBLE) return;
      context.globalAlpha = share;
      const [left, wide] = [from / ratio, width / ratio];
      const { canvas } = this.#context;
      context.drawImage(canvas, from, 0, width, 1, left, top / ratio, wide, tall / ratio);
    };
    // An image has no soft edges, unlike a rectangle: rows covered in part are drawn on their own.
    const [top, bottom] = [y * ratio, (y + height) * ratio];
    const [first, end] = [Math.ceil(top), Math.floor(bottom)];
    if (end < first) rows(end, 1, bottom - top);
    else {
      rows(first - 1, 1, first - top);
      rows(first, end - first, 1);
      rows(end, 1, bottom - end);
    }
    context.imageSmoothingEnabled = true;
  }
}

/** Colour (#rrggbb) as an image stores it: red is the lowest byte, the highest is still free. */
export function packed(colour: string): number {
  const [red, green, blue] = rgb(colour).map((share) => Math.round(share * 255));
  return (blue << 16) | (green << 8) | red;
}
