// The window of time that is looked at: zoom, pan, glide, and the way back.

import { History } from "./history.ts";
import { around, clamp, pan, type Range, zoom } from "./scale.ts";

const GLIDE_MS = 180;
/** A window that stood still this long is one to come back to. */
const REST_MS = 600;

export class Viewport {
  /** Pixels that the window is wide. */
  width = 0;
  #view: Range;
  #glide = 0;
  #rest = 0;
  readonly #history: History;
  readonly #watchers = new Set<(view: Range) => void>();

  constructor(readonly whole: Range) {
    this.#view = whole;
    this.#history = new History(whole);
  }

  get view(): Range {
    return this.#view;
  }

  /** Calls `watcher` whenever the window changes; the result ends that. */
  watch(watcher: (view: Range) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Goes to a window at once. */
  set(view: Range): void {
    cancelAnimationFrame(this.#glide);
    this.#move(clamp(view, this.whole));
    clearTimeout(this.#rest);
    this.#rest = setTimeout(() => this.#history.note(this.#view), REST_MS) as unknown as number;
  }

  /** Zooms by `factor` (below 1 shows less time); the time at pixel `x` stays where it is. */
  zoom(factor: number, x = this.width / 2): void {
    this.set(zoom(this.#view, this.whole, factor, x, this.width));
  }

  pan(pixels: number): void {
    this.set(pan(this.#view, this.whole, pixels, this.width));
  }

  /** Glides to exactly this window. */
  glide(to: Range): void {
    this.#settle();
    const end = clamp(to, this.whole);
    this.#history.note(end);
    this.#glideTo(end);
  }

  /** Glides to a stretch of time, with a little around it. */
  show(stretch: Range): void {
    this.glide(around(stretch, this.whole));
  }

  fit(): void {
    this.glide(this.whole);
  }

  back(): void {
    this.#settle();
    this.#glideTo(this.#history.back());
  }

  forward(): void {
    this.#settle();
    this.#glideTo(this.#history.forward());
  }

  destroy(): void {
    cancelAnimationFrame(this.#glide);
    clearTimeout(this.#rest);
    this.#watchers.clear();
  }

  /** Notes the window that stands now, without waiting for it to rest. */
  #settle(): void {
    clearTimeout(this.#rest);
    if (this.#glide === 0) this.#history.note(this.#view);
  }

  #glideTo(to: Range | null): void {
    cancelAnimationFrame(this.#glide);
    this.#glide = 0;
    if (!to) return;
    const from = this.#view;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const began = performance.now();
    const step = (now: number): void => {
      const part = still ? 1 : Math.min(Math.max((now - began) / GLIDE_MS, 0), 1);
      const eased = 1 - (1 - part) ** 3;
      const start = from.start + (to.start - from.start) * eased;
      const end = from.end + (to.end - from.end) * eased;
      this.#glide = part < 1 ? requestAnimationFrame(step) : 0;
      this.#move(part < 1 ? { start, end } : to);
    };
    this.#glide = requestAnimationFrame(step);
  }

  #move(view: Range): void {
    this.#view = view;
    for (const watcher of this.#watchers) watcher(view);
  }
}
