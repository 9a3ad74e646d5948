// The Canvas2D renderer.

import { Rects, rects } from "./cull.ts";
import { type BusyCurve, type Kind, type Slice, utilisation } from "./model.ts";
import type { Band, Frame, Renderer } from "./renderer.ts";
import { toPixel, toTime } from "./scale.ts";
import type { Palette } from "./theme.ts";

const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
/** Narrower rectangles carry no text. */
const TEXT_WIDTH = 34;
const DIMMED = 0.22;

/** Height and offset of each kind within its row, as shares: kinds differ in shape, not only hue. */
const SHAPES: Record<Kind, [top: number, height: number]> = {
  0: [0.2, 0.6],
  1: [0, 1],
  2: [0.18, 0.64],
  3: [0.6, 0.4],
  4: [0, 1],
  5: [0.3, 0.4],
};

export class Canvas2dRenderer implements Renderer {
  readonly #context: CanvasRenderingContext2D;
  readonly #rects = new Rects();
  #frame!: Frame;
  #ratio = 1;
  #hatch = new Map<string, CanvasPattern | null>();

  constructor(private readonly canvas: HTMLCanvasElement) {
    const context = canvas.getContext("2d");
    if (!context) throw new Error("this browser has no 2D canvas");
    this.#context = context;
  }

  resize(width: number, height: number, ratio: number): void {
    this.canvas.width = Math.max(Math.round(width * ratio), 1);
    this.canvas.height = Math.max(Math.round(height * ratio), 1);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.#ratio = ratio;
    this.#hatch.clear();
  }

  begin(frame: Frame): void {
    this.#frame = frame;
    const c = this.#context;
    c.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    c.fillStyle = frame.palette.background;
    c.fillRect(0, 0, frame.width, frame.height);
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
    const c = this.#context;
    const { palette, view, width, height: bottom } = this.#frame;
    times.forEach((time, i) => {
      const x = Math.round(toPixel(time, view, width)) + 0.5;
      c.fillStyle = palette.line;
      c.fillRect(x - 0.5, height - 5, 1, bottom);
      c.fillStyle = palette.faint;
      const room = c.measureText(labels[i]).width;
      if (x + room + 4 < width) c.fillText(labels[i], x + 4, height / 2);
    });
  }

  busy(curve: BusyCurve, y: number, height: number): void {
    const c = this.#context;
    const { palette, view, width } = this.#frame;
    c.fillStyle = palette.line;
    c.fillRect(0, y + height - 1, width, 1);
    c.fillStyle = palette.busy;
    c.globalAlpha = 0.75;
    c.beginPath();
    c.moveTo(0, y + height);
    for (let x = 0; x < width; x++) {
      const share = utilisation(curve, {
        start: toTime(x, view, width),
        end: toTime(x + 1, view, width),
      });
      const top = y + height - share * height;
      c.lineTo(x, top);
      c.lineTo(x + 1, top);
    }
    c.lineTo(width, y + height);
    c.closePath();
    c.fill();
    c.globalAlpha = 1;
  }

  separator(y: number): void {
    this.#context.fillStyle = this.#frame.palette.line;
    this.#context.fillRect(0, Math.round(y), this.#frame.width, 1);
  }

  slice(slice: Slice, band: Band): void {
    const { lit, view, width } = this.#frame;
    const c = this.#context;
    rects(slice, view, width, this.#rects);
    c.globalAlpha = lit ? DIMMED : 1;
    this.#paint(slice, band, lit === null);
    if (lit) {
      // What is lit is put together apart, so that a dim neighbour never swallows it.
      rects(slice, view, width, this.#rects, lit[slice.set.prefix]);
      c.globalAlpha = 1;
      this.#paint(slice, band, true);
    }
    c.globalAlpha = 1;
  }

  #paint(slice: Slice, band: Band, bright: boolean): void {
    const c = this.#context;
    const { palette, lit } = this.#frame;
    const found = this.#rects;
    const { set } = slice;
    const alpha = c.globalAlpha;
    for (let i = 0; i < found.length; i++) {
      const event = found.event[i];
      const kind = (set.kind?.[event] ?? 0) as Kind;
      const x = found.x[i];
      const [top, share] = band.look === "activity" ? SHAPES[kind] : [0, 1];
      const y = band.y + top * band.height;
      const height = Math.max(share * band.height, 2);
      // A gap of half a pixel keeps neighbours apart where there is room for it.
      const width = found.width[i] > 3 ? found.width[i] - 0.5 : found.width[i];
      // What several events cover only partly is drawn fainter: idle stays visible at any zoom.
      c.globalAlpha = found.merged[i] ? alpha * (0.35 + 0.65 * found.cover[i]) : alpha;
      this.#fill(band, palette, kind, x, y, width, height);
      c.globalAlpha = alpha;
      if (!found.merged[i] && bright) {
        if (width > TEXT_WIDTH && band.height >= 12) {
          this.#label(set.name("name", event), band, kind, x, width);
        }
        const chosen = lit?.chosen;
        if (chosen && chosen.event === event && chosen.prefix === set.prefix) {
          c.strokeStyle = palette.select;
          c.lineWidth = 1.5;
          c.strokeRect(x - 0.25, y + 0.25, Math.max(width, 1.5), height - 0.5);
        }
      }
    }
  }

  #fill(
    band: Band,
    palette: Palette,
    kind: Kind,
    x: number,
    y: number,
    width: number,
    height: number,
  ): void {
    const c = this.#context;
    if (band.look === "op") {
      c.fillStyle = palette.ops[kind];
      c.fillRect(x, y, width, height);
      c.fillStyle = palette.edges[kind];
      c.fillRect(x, y, Math.min(width, 2), height);
      return;
    }
    c.fillStyle = band.look === "api" ? palette.api : palette.kinds[kind];
    c.fillRect(x, y, width, height);
    if (kind === 2 && band.look === "activity" && width >= 4) {
      const pattern = this.#hatched(palette.background);
      if (pattern) {
        c.fillStyle = pattern;
        c.fillRect(x, y, width, height);
      }
    }
  }

  #label(text: string, band: Band, kind: Kind, x: number, width: number): void {
    const { palette, width: whole } = this.#frame;
    const c = this.#context;
    const from = Math.max(x, 0) + 5;
    const room = Math.min(x + width, whole) - from - 3;
    const shown = clipped(c, band.look === "op" ? text : shortKernel(text), room);
    if (!shown) return;
    const dark = band.look === "activity" && kind === 1;
    if (band.look === "activity" && kind !== 1) {
      if (kind !== 2) return;
      // On hatching, text needs ground of its own.
      c.fillStyle = palette.kinds[2];
      c.fillRect(from - 2, band.y + 3, c.measureText(shown).width + 4, band.height - 6);
      c.fillStyle = "#16120a";
    } else c.fillStyle = dark ? palette.onKind : palette.text;
    c.fillText(shown, from, band.y + band.height / 2 + 0.5);
  }

  #hatched(colour: string): CanvasPattern | null {
    const known = this.#hatch.get(colour);
    if (known !== undefined) return known;
    const tile = document.createElement("canvas");
    tile.width = 6;
    tile.height = 6;
    const t = tile.getContext("2d");
    if (!t) return null;
    t.strokeStyle = colour;
    t.globalAlpha = 0.55;
    t.lineWidth = 1.4;
    t.beginPath();
    for (const shift of [-6, 0, 6]) {
      t.moveTo(shift - 1, 7);
      t.lineTo(shift + 7, -1);
    }
    t.stroke();
    const pattern = this.#context.createPattern(tile, "repeat");
    this.#hatch.set(colour, pattern);
    return pattern;
  }
}

/** A C++ kernel's own name, without namespaces, templates and arguments. */
export function shortKernel(name: string): string {
  const plain = name.replace(/^(void|static)\s+/, "");
  const head = plain.split(/[<(]/)[0].trim();
  return head.split("::").pop() || plain;
}

/** As much of the text as fits, cut in the middle; nothing where only crumbs would fit. */
function clipped(c: CanvasRenderingContext2D, text: string, room: number): string {
  const line = text.length > 300 ? text.slice(0, 300) : text;
  const whole = c.measureText(line).width;
  if (whole <= room) return line;
  // Letters differ in width: start from the average and give up letters until it fits.
  for (let keep = Math.floor((room / whole) * line.length); keep >= 3; keep--) {
    const head = Math.ceil(keep * 0.6);
    const cut = `${line.slice(0, head)}…${line.slice(line.length - (keep - head))}`;
    if (c.measureText(cut).width <= room) return cut;
  }
  return "";
}
