// Creation of the renderer that the views draw with.

import { Painter } from "./canvas_renderer.ts";
import type { Renderer, RendererOptions } from "./renderer.ts";

/** A renderer that draws on `canvas`; see painter.ts for how it picks what draws the events. */
export function createRenderer(canvas: HTMLCanvasElement, options: RendererOptions): Renderer {
  return new Painter(canvas, options);
}
