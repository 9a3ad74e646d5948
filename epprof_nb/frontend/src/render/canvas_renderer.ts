// The renderer: one 2D canvas, on which something else may draw the events.

import type { Stretch } from "../data/model.ts";
import { WebglBars } from "../webgl.ts";
import { openDevice } from "../webgl_device.ts";
import type { Bars, Row } from "./backend.ts";
import { Canvas2dBars } from "./canvas2d.ts";
import * as marks from "./decorations.ts";
import { FONT, Names } from "./event_labels.ts";
import type {
  Band,
  Frame,
  Place,
  Renderer,
  RendererName,
  RendererOptions,
  SpanStyle,
} from "./renderer.ts";
import { moreContrast } from "./theme.ts";

/** A window's height around the one shown counts as shown. */
const AHEAD = "100% 0px";

export class Painter implements Renderer {
  readonly #context: CanvasRenderingContext2D;
  readonly #names: Names;
  readonly #plain = new Canvas2dBars();
  #bars: Bars = this.#plain;
  /** Rows asked for and not drawn yet: they are drawn together. */
  #rows: Row[] = [];
  #frame!: Frame;
  #ratio = 1;
  #seen = true;
  readonly #watch = new IntersectionObserver((entries) => this.#see(entries), {
    rootMargin: AHEAD,
  });

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly options: RendererOptions,
  ) {
    const context = canvas.getContext("2d");
    if (!context)
      throw new Error(
        "The timeline cannot be drawn: this browser gives no 2D canvas. Free memory or close " +
          "other pages, then open this one again.",
      );
    this.#context = context;
    this.#names = new Names(context);
    this.#watch.observe(canvas);
    moreContrast().addEventListener("change", options.redraw);
  }

  get name(): RendererName {
    return this.#bars.name;
  }

  resize(width: number, height: number, ratio: number): void {
    this.canvas.width = Math.max(Math.round(width * ratio), 1);
    this.canvas.height = Math.max(Math.round(height * ratio), 1);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.#ratio = ratio;
  }

  begin(frame: Frame): void {
    this.#choose();
    this.#frame = frame;
    this.#rows = [];
    const c = this.#context;
    c.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    c.fillStyle = frame.palette.background;
    c.fillRect(0, 0, frame.width, frame.height);
    c.font = FONT;
    c.textBaseline = "middle";
    c.save();
  }

  end(): void {
    this.#drawRows();
    this.#context.restore();
  }

  clip(top: number, bottom: number): void {
    this.#drawRows();
    const c = this.#context;
    c.restore();
    c.save();
    c.beginPath();
    c.rect(0, top, this.#frame.width, bottom - top);
    c.clip();
  }

  ruler(times: number[], labels: string[], height: number): void {
    this.#drawRows();
    marks.ruler(this.#context, this.#frame, times, labels, height);
  }

  counter(values: ArrayLike<number>, y: number, height: number, max: number, colour: string): void {
    this.#drawRows();
    marks.counter(this.#context, this.#frame, values, y, height, max, colour);
  }

  separator(y: number): void {
    // Lies between rows, so it need not wait for them.
    this.#context.fillStyle = this.#frame.palette.line;
    this.#context.fillRect(0, Math.round(y), this.#frame.width, 1);
  }

  slice(slice: Stretch, band: Band): void {
    this.#rows.push({ slice, band });
  }

  lines(flows: [from: Place, to: Place][]): void {
    this.#drawRows();
    marks.flows(this.#context, this.#frame, flows);
  }

  band(t0: number, t1: number, y0: number, y1: number, style: SpanStyle, text?: string): void {
    this.#drawRows();
    marks.span(this.#context, this.#frame, t0, t1, y0, y1, style, text);
  }

  destroy(): void {
    this.#watch.disconnect();
    moreContrast().removeEventListener("change", this.options.redraw);
    this.#use(this.#plain);
    this.#plain.destroy();
    this.#rows = [];
    // A canvas without pixels holds no memory.
    this.canvas.width = 0;
    this.canvas.height = 0;
  }

  #drawRows(): void {
    if (this.#rows.length === 0) return;
    if (!this.#bars.draw(this.#context, this.#frame, this.#ratio, this.#rows)) {
      this.#use(this.#plain);
      this.#plain.draw(this.#context, this.#frame, this.#ratio, this.#rows);
    }
    for (const { slice, band } of this.#rows) this.#names.draw(slice, band, this.#frame);
    this.#rows = [];
  }

  /** Takes WebGL2 where it is to be had, and is no slower: in software, Canvas2D is faster. */
  #choose(): void {
    const wish = wished(this.canvas);
    if (this.#bars !== this.#plain && wish !== "canvas2d") return;
    const device = wish !== "canvas2d" && this.#seen ? openDevice(wish === "webgl") : null;
    this.#use(device?.usable ? new WebglBars(device, () => this.#changed()) : this.#plain);
  }

  #use(bars: Bars): void {
    this.canvas.dataset.drawnBy = bars.name;
    if (bars === this.#bars) return;
    if (this.#bars !== this.#plain) this.#bars.destroy();
    this.#bars = bars;
  }

  /** The context came or went: the picture stays until the next frame, which finds what it can. */
  #changed(): void {
    if (this.#seen) this.options.redraw();
  }

  /** Out of view, the last picture stays and the GPU is left to others. */
  #see(entries: IntersectionObserverEntry[]): void {
    const seen = entries.at(-1)?.isIntersecting ?? true;
    if (seen === this.#seen) return;
    this.#seen = seen;
    if (seen) this.options.redraw();
    else this.#use(this.#plain);
  }
}

/** What an element around asks for by `data-renderer="webgl"` or `"canvas2d"`, also later. */
function wished(canvas: HTMLElement): RendererName | null {
  for (let at: Element | null = canvas; at; ) {
    const wish = at.closest<HTMLElement>("[data-renderer]")?.dataset.renderer;
    if (wish === "webgl" || wish === "canvas2d") return wish;
    const root: Node = at.getRootNode();
    at = root instanceof ShadowRoot ? root.host : null;
  }
  return null;
}
