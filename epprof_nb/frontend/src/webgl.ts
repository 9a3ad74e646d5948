// Events by WebGL2: one draw a row, from columns that stay on the GPU.

import type { Lit, Stretch } from "./data/model.ts";
import { visible } from "./data/visible_events.ts";
import type { Bars, Row } from "./render/backend.ts";
import { DIMMED, fill, KINDS, shape } from "./render/event_style.ts";
import { level } from "./render/mipmap.ts";
import type { Band, Frame } from "./render/renderer.ts";
import { rgb } from "./render/theme.ts";
import type { Device, User } from "./webgl_device.ts";
import { pack, split, TEXTURE_WIDTH } from "./webgl_pack.ts";

const CORNERS = 4;
/** Frames after which what was not drawn is taken off the GPU; and sooner where there is much. */
const IDLE_FRAMES = 120;
const MANY_PARTS = 400;

interface Part {
  /** Time that counts as 0 in the texture. */
  base: number;
  texture: WebGLTexture;
  used: number;
}

export class WebglBars implements Bars, User {
  readonly name = "webgl";
  readonly #parts = new Map<Stretch, Part>();
  #frame = 0;

  constructor(
    private readonly device: Device,
    private readonly notify: () => void,
  ) {
    device.join(this);
  }

  draw(context: CanvasRenderingContext2D, frame: Frame, ratio: number, rows: Row[]): boolean {
    const { device } = this;
    const { gl } = device;
    const width = Math.round(frame.width * ratio);
    const height = Math.round(frame.height * ratio);
    if (!device.usable || !device.grow(width, height)) return false;
    this.#frame++;
    // Only the rows' part of the window is cleared, drawn and copied.
    const tops = rows.map(({ band }) => band.y);
    const bottoms = rows.map(({ band }) => band.y + band.height);
    const top = Math.max(Math.floor(Math.min(...tops) * ratio), 0);
    const bottom = Math.min(Math.ceil(Math.max(...bottoms) * ratio) + 1, height);
    if (bottom <= top) return true;
    gl.viewport(0, 0, width, height);
    gl.scissor(0, height - bottom, width, bottom - top);
    gl.uniform2f(device.uniforms.size, width, height);
    gl.uniform1f(device.uniforms.unit, ratio);
    gl.uniform1f(device.uniforms.scale, width / (frame.view.end - frame.view.start));
    gl.uniform3fv(device.uniforms.background, rgb(frame.palette.background));
    const copy = (alpha: number): void => {
      context.save();
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.globalAlpha = alpha;
      // A viewport lies at the lower left of its canvas.
      const y = device.canvas.height - height + top;
      const tall = bottom - top;
      context.drawImage(device.canvas, 0, y, width, tall, 0, top, width, tall);
      context.restore();
    };
    this.#picture(frame, ratio, rows, null);
    copy(frame.lit ? DIMMED : 1);
    if (frame.lit) {
      // What is lit is put together apart, so that a dim neighbour never swallows it.
      this.#picture(frame, ratio, rows, frame.lit);
      copy(1);
    }
    if (this.#parts.size > MANY_PARTS) this.#sweep(1);
    else if (this.#frame % IDLE_FRAMES === 0) this.#sweep(IDLE_FRAMES);
    return !gl.isContextLost();
  }

  lost(): void {
    this.#parts.clear();
    this.notify();
  }

  destroy(): void {
    for (const { texture } of this.#parts.values()) this.device.gl.deleteTexture(texture);
    this.#parts.clear();
    this.device.leave(this);
  }

  #picture(frame: Frame, ratio: number, rows: Row[], lit: Lit | null): void {
    const { gl } = this.device;
    gl.colorMask(true, true, true, true);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    // First opacity, as a sum; then the colour of what is nearest.
    gl.enable(gl.BLEND);
    gl.disable(gl.DEPTH_TEST);
    gl.colorMask(false, false, false, true);
    this.#paint(frame, ratio, rows, lit);
    gl.disable(gl.BLEND);
    gl.enable(gl.DEPTH_TEST);
    gl.colorMask(true, true, true, false);
    this.#paint(frame, ratio, rows, lit);
  }

  #paint(frame: Frame, ratio: number, rows: Row[], lit: Lit | null): void {
    const { gl, uniforms } = this.device;
    const pixel = (frame.view.end - frame.view.start) / frame.width;
    let look: Band["look"] | null = null;
    for (const { slice, band } of rows) {
      const merged = level(slice, pixel, lit?.[slice.set.prefix]);
      const [first, end] = visible(merged, frame.view, pixel);
      if (first >= end) continue;
      const { texture, base } = this.#part(merged);
      if (band.look !== look) {
        look = band.look;
        this.#colours(frame, band);
      }
      const shapes = KINDS.map((kind) => shape(band, kind));
      gl.uniform2fv(
        uniforms.shapes,
        shapes.flatMap(({ y, height }) => [y * ratio, height * ratio]),
      );
      gl.uniform2fv(uniforms.origin, split(frame.view.start - base));
      gl.bindTexture(gl.TEXTURE_2D, texture);
      gl.uniform1i(uniforms.begin, first - merged.first);
      gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, CORNERS, end - first);
    }
  }

  #colours({ palette }: Frame, band: Band): void {
    const { gl, uniforms } = this.device;
    const fills = KINDS.map((kind) => fill(band, palette, kind));
    const edges = band.look === "op" ? KINDS.map((kind) => palette.edges[kind]) : fills;
    gl.uniform3fv(uniforms.fills, fills.flatMap(rgb));
    gl.uniform3fv(uniforms.edges, edges.flatMap(rgb));
    gl.uniform1i(uniforms.hatches, band.look === "activity" ? 1 : 0);
  }

  #part(slice: Stretch): Part {
    let part = this.#parts.get(slice);
    if (!part) {
      const { gl } = this.device;
      const { data, base } = pack(slice);
      const lines = data.length / (TEXTURE_WIDTH * 4);
      const texture = gl.createTexture();
      gl.bindTexture(gl.TEXTURE_2D, texture);
      gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA32F, TEXTURE_WIDTH, lines);
      // Floats cannot be filtered: with a texture's defaults nothing could be read.
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
      gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
      const place = [0, 0, 0, TEXTURE_WIDTH, lines] as const;
      gl.texSubImage2D(gl.TEXTURE_2D, ...place, gl.RGBA, gl.FLOAT, data);
      part = { base, texture, used: this.#frame };
      this.#parts.set(slice, part);
    }
    part.used = this.#frame;
    return part;
  }

  #sweep(idle: number): void {
    for (const [slice, part] of this.#parts) {
      if (this.#frame - part.used < idle) continue;
      this.device.gl.deleteTexture(part.texture);
      this.#parts.delete(slice);
    }
  }
}
