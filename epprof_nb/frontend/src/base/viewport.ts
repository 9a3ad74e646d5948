// Time window of a view: zoom, pan, animation and history.

import { clamp, pan, type Range, withContext, zoom } from "./time_scale.ts";
import { History } from "./window_history.ts";

const GLIDE_MS = 180;
/** Time a window must rest before it is added to the history. */
const REST_MS = 600;
/** Time constant of the easing: after this long a third of a nudge remains. */
const EASE_MS = 45;

export class Viewport {
  /** Width of the window in pixels. */
  width = 0;
  #view: Range;
  #glide = 0;
  #rest = 0;
  #easing = 0;
  /** Pan in pixels and logarithm of the zoom still to be applied. */
  #remaining = { pixels: 0, zoom: 0 };
  readonly #history: History;
  readonly #watchers = new Set<(view: Range) => void>();

  constructor(readonly whole: Range) {
    this.#view = whole;
    this.#history = new History(whole);
  }

  get view(): Range {
    return this.#view;
  }

  /** Register a watcher of window changes. Returns a function that removes it. */
  watch(watcher: (view: Range) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Move to a window without animation. */
  set(view: Range): void {
    this.#stop();
    this.#go(view);
  }

  #go(view: Range): void {
    this.#move(clamp(view, this.whole));
    clearTimeout(this.#rest);
    this.#rest = setTimeout(() => this.#history.note(this.#view), REST_MS) as unknown as number;
  }

  /** Zoom by `factor` (below 1 shows less time); the time at pixel `x` stays in place. */
  zoom(factor: number, x = this.width / 2): void {
    this.set(zoom(this.#view, this.whole, factor, x, this.width));
  }

  pan(pixels: number): void {
    this.set(pan(this.#view, this.whole, pixels, this.width));
  }

  /**
   * Pan by `pixels` and zoom by `factor` about the middle, easing out over some frames. Further
   * calls add up.
   */
  nudge(pixels: number, factor = 1): void {
    if (this.#glide) this.#stop();
    this.#remaining.pixels += pixels;
    this.#remaining.zoom += Math.log(factor);
    if (reducedMotion().matches) this.#apply(1);
    else if (!this.#easing) this.#ease(performance.now());
  }

  /** Animate to exactly this window. */
  animateTo(to: Range): void {
    this.#recordView();
    const end = clamp(to, this.whole);
    this.#history.note(end);
    this.#glideTo(end);
  }

  /** Animate to a time range with some context around it. */
  show(range: Range): void {
    this.animateTo(withContext(range, this.whole));
  }

  fit(): void {
    this.animateTo(this.whole);
  }

  back(): void {
    this.#recordView();
    this.#glideTo(this.#history.back());
  }

  forward(): void {
    this.#recordView();
    this.#glideTo(this.#history.forward());
  }

  destroy(): void {
    this.#stop();
    clearTimeout(this.#rest);
    this.#watchers.clear();
  }

  /** Add the current window to the history without waiting for it to rest. */
  #recordView(): void {
    clearTimeout(this.#rest);
    if (this.#glide === 0) this.#history.note(this.#view);
  }

  #glideTo(to: Range | null): void {
    if (!to) return;
    this.#stop();
    const from = this.#view;
    const still = reducedMotion().matches;
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
      const { pixels, zoom: rest } = this.#remaining;
      const done = Math.abs(pixels) < 0.5 && Math.abs(rest) < 1e-3;
      this.#apply(done ? 1 : 1 - Math.exp(-Math.max(now - last, 1) / EASE_MS));
      if (!done) this.#ease(now);
    });
  }

  /** Apply a share of the remaining pan and zoom. */
  #apply(share: number): void {
    const pixels = this.#remaining.pixels * share;
    const part = this.#remaining.zoom * share;
    this.#remaining.pixels -= pixels;
    this.#remaining.zoom -= part;
    const { whole, width } = this;
    this.#go(zoom(pan(this.#view, whole, pixels, width), whole, Math.exp(part), width / 2, width));
  }

  #stop(): void {
    cancelAnimationFrame(this.#glide);
    cancelAnimationFrame(this.#easing);
    this.#glide = this.#easing = 0;
    this.#remaining = { pixels: 0, zoom: 0 };
  }

  #move(view: Range): void {
    this.#view = view;
    for (const watcher of this.#watchers) watcher(view);
  }
}

function reducedMotion(): MediaQueryList {
  return matchMedia("(prefers-reduced-motion: reduce)");
}
