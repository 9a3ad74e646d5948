// The WebGL2 context: one for all timelines of this module, for its canvas is never shown itself.

import { contexts, type Holder } from "./webgl_contexts.ts";
import { FRAGMENT, VERTEX } from "./webgl_shaders.ts";

/** Kept this long after its last user left: scrolling on brings the next one. */
const LINGER_MS = 500;
/** After so many losses contexts are not trusted any more. */
const MOST_LOSSES = 3;

const UNIFORMS = [
  "origin",
  "scale",
  "size",
  "unit",
  "shapes",
  "fills",
  "edges",
  "hatches",
  "background",
  "begin",
] as const;

export interface User {
  /** The context is gone, and what was kept in it. */
  lost(): void;
}

export class Device implements Holder {
  readonly canvas = document.createElement("canvas");
  readonly gl: WebGL2RenderingContext;
  uniforms!: Record<(typeof UNIFORMS)[number], WebGLUniformLocation | null>;
  #usable = true;
  #linger = 0;
  readonly #users = new Set<User>();
  readonly #ended = new AbortController();

  /** Raises an error where there is no context, or only one in software and that is not wanted. */
  constructor(software: boolean) {
    const gl = this.canvas.getContext("webgl2", {
      antialias: false,
      premultipliedAlpha: false,
      failIfMajorPerformanceCaveat: !software,
    });
    if (!gl) throw new Error("no WebGL2 context");
    if (!software && inSoftware(gl)) {
      gl.getExtension("WEBGL_lose_context")?.loseContext();
      throw new Error("WebGL2 only in software");
    }
    this.gl = gl;
    this.#prepare();
    const { signal } = this.#ended;
    this.canvas.addEventListener("webglcontextlost", (event) => this.#lost(event), { signal });
    this.canvas.addEventListener("webglcontextrestored", () => this.#restored(), { signal });
  }

  get usable(): boolean {
    return this.#usable && !this.gl.isContextLost();
  }

  join(user: User): void {
    clearTimeout(this.#linger);
    this.#users.add(user);
  }

  leave(user: User): void {
    this.#users.delete(user);
    if (this.#users.size > 0) return;
    clearTimeout(this.#linger);
    this.#linger = window.setTimeout(() => this.release(), LINGER_MS);
  }

  /** Room for a picture of this size; false where the context gives none. */
  grow(width: number, height: number): boolean {
    if (width > this.canvas.width) this.canvas.width = width;
    if (height > this.canvas.height) this.canvas.height = height;
    const { gl } = this;
    return gl.drawingBufferWidth >= width && gl.drawingBufferHeight >= height;
  }

  seen(): boolean {
    return this.#users.size > 0;
  }

  release(): void {
    clearTimeout(this.#linger);
    this.#ended.abort();
    this.#usable = false;
    if (device === this) device = null;
    contexts().give(this);
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
    for (const user of [...this.#users]) user.lost();
    this.#users.clear();
  }

  #lost(event: Event): void {
    // Without this the browser never restores the context.
    if (++losses < MOST_LOSSES) event.preventDefault();
    this.#usable = false;
    for (const user of this.#users) user.lost();
  }

  #restored(): void {
    this.#prepare();
    this.#usable = true;
  }

  #prepare(): void {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [type, source] of [
      [gl.VERTEX_SHADER, VERTEX],
      [gl.FRAGMENT_SHADER, FRAGMENT],
    ] as const) {
      const shader = gl.createShader(type);
      if (!shader) throw new Error("no WebGL2 shader");
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
      gl.deleteShader(shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost())
      throw new Error(`WebGL2 shaders do not link: ${gl.getProgramInfoLog(program)}`);
    gl.useProgram(program);
    const locations = UNIFORMS.map((name) => [name, gl.getUniformLocation(program, name)]);
    this.uniforms = Object.fromEntries(locations);
    gl.enable(gl.SCISSOR_TEST);
    gl.blendFunc(gl.ONE, gl.ONE);
    gl.depthFunc(gl.LEQUAL);
    gl.clearColor(0, 0, 0, 0);
  }
}

/** Whether the processor does the GPU's work; browsers do not all count that as a caveat. */
function inSoftware(gl: WebGL2RenderingContext): boolean {
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  const name = String(gl.getParameter(info?.UNMASKED_RENDERER_WEBGL ?? gl.RENDERER));
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
}

let device: Device | null = null;
let losses = 0;
/** Whether no context was to be had, by whether one in software would have done. */
const refused = { true: false, false: false };

/** The device, opened if need be; null where WebGL2 is not to be had now. */
export function openDevice(software: boolean): Device | null {
  if (device) return device;
  if (refused[`${software}`] || losses >= MOST_LOSSES) return null;
  const holder: Holder = { seen: () => true, release: () => undefined };
  if (!contexts().take(holder)) return null;
  try {
    device = new Device(software);
    contexts().give(holder);
    contexts().take(device);
  } catch {
    contexts().give(holder);
    refused[`${software}`] = true;
  }
  return device;
}
