// The window of time that is looked at: zoom, pan, glide, and the way back.

import { History } from "./history.ts";
import { around, clamp, pan, type Range, zoom } from "./time_scale.ts";

const GLIDE_MS = 180;
/** A window that stood still this long is one to come back to. */
const REST_MS = 600;
/** How fast a nudge eases out: after this long a third of it is left. */
const EASE_MS = 45;

export class Viewport {
  /** Pixels that the window is wide. */
  width = 0;
  #view: Range;
  #glide = 0;
  #rest = 0;
  #easing = 0;
  /** What is still to be panned and, as a logarithm, zoomed. */
  #owed = { pixels: 0, zoom: 0 };
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
    this.#stop();
    this.#go(view);
  }

  #go(view: Range): void {
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

  /**
   * Pans by `pixels` and zooms by `factor` about the middle, easing out over some frames; what is
   * asked for meanwhile is added.
   */
  nudge(pixels: number, factor = 1): void {
    if (this.#glide) this.#stop();
    this.#owed.pixels += pixels;
    this.#owed.zoom += Math.log(factor);
    if (stillness().matches) this.#pay(1);
    else if (!this.#easing) this.#ease(performance.now());
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
    this.#stop();
    clearTimeout(this.#rest);
    this.#watchers.clear();
  }

  /** Notes the window that stands now, without waiting for it to rest. */
  #settle(): void {
    clearTimeout(this.#rest);
    if (this.#glide === 0) this.#history.note(this.#view);
  }

  #glideTo(to: Range | null): void {
    if (!to) return;
    this.#stop();
    const from = this.#view;
    const still = stillness().matches;
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

  #ease(last: number): void {
    this.#easing = requestAnimationFrame((now) => {
      this.#easing = 0;
      const { pixels, zoom: rest } = this.#owed;
      const done = Math.abs(pixels) < 0.5 && Math.abs(rest) < 1e-3;
      this.#pay(done ? 1 : 1 - Math.exp(-Math.max(now - last, 1) / EASE_MS));
      if (!done) this.#ease(now);
    });
  }

  /** Does a share of what is owed. */
  #pay(share: number): void {
    const pixels = this.#owed.pixels * share;
    const part = this.#owed.zoom * share;
    this.#owed.pixels -= pixels;
    this.#owed.zoom -= part;
    const { whole, width } = this;
    this.#go(zoom(pan(this.#view, whole, pixels, width), whole, Math.exp(part), width / 2, width));
  }

  #stop(): void {
    cancelAnimationFrame(this.#glide);
    cancelAnimationFrame(this.#easing);
    this.#glide = this.#easing = 0;
    this.#owed = { pixels: 0, zoom: 0 };
  }

  #move(view: Range): void {
    this.#view = view;
    for (const watcher of this.#watchers) watcher(view);
  }
}

function stillness(): MediaQueryList {
  return matchMedia("(prefers-reduced-motion: reduce)");
}
