// What draws events as rectangles, and nothing else: by WebGL2 or by Canvas2D.

import type { Stretch } from "../data/model.ts";
import type { Band, Frame, RendererName } from "./renderer.ts";

export interface Row {
  slice: Stretch;
  band: Band;
}

export interface Bars {
  readonly name: RendererName;
  /** Draws rows of events onto the 2D context; false where it could not, and drew nothing. */
  draw(context: CanvasRenderingContext2D, frame: Frame, ratio: number, rows: Row[]): boolean;
  destroy(): void;
}
