// The timeline: state, layout and frames. Drawing is a renderer's, gestures are interact.ts's.

import { Canvas2dRenderer } from "./canvas2d.ts";
import { panel, tooltip } from "./details.ts";
import { h } from "./dom.ts";
import { percent } from "./format.ts";
import { type Hit, hit } from "./hit.ts";
import { listen } from "./interact.ts";
import { type PlacedLane, place, slicesAt, total } from "./lanes.ts";
import { type Events, type Overview, utilisation } from "./model.ts";
import type { Lit, Renderer } from "./renderer.ts";
import { around, clamp, pan, type Range, tickLabel, ticks, toTime, zoom } from "./scale.ts";
import { light, lightActivities, lightOps } from "./selection.ts";
import { palette, type Theme } from "./theme.ts";

const RULER = 22;
const BUSY = 30;
const BUSY_GAP = 8;
const GLIDE_MS = 180;
const SETTLE_MS = 140;

export interface TimelineOptions {
  /** Height of the lanes' window at most, pixels. */
  maxHeight: number;
  greedyWheel: boolean;
  /** Asks for the events of a window, where more are to be had than were sent. */
  load?: (view: Range, width: number) => Promise<Events | null>;
  selected?: (hit: Hit | null) => void;
}

export class Timeline {
  readonly element: HTMLElement;
  readonly #canvas = h("canvas", { "aria-hidden": "true" });
  readonly #labels = h("div", { class: "ep-labels" });
  readonly #laneLabels = h("div", { class: "ep-lane-labels" });
  readonly #scroller: HTMLElement;
  readonly #content: HTMLElement;
  readonly #stage: HTMLElement;
  readonly #tip = h("div", { class: "ep-tip", role: "tooltip", hidden: true });
  readonly #panel = h("div", { class: "ep-panel", "aria-live": "polite" });
  readonly #renderer: Renderer;
  readonly #whole: Range;
  readonly #folded = new Set<number>();
  #events: Events;
  #placed: PlacedLane[] = [];
  #view: Range;
  #lit: Lit | null = null;
  #theme: Theme = "light";
  #width = 0;
  #height = 0;
  #frame = 0;
  #settle = 0;
  #request = 0;

  constructor(
    private readonly overview: Overview,
    private readonly first: Events,
    private readonly options: TimelineOptions,
  ) {
    this.#events = first;
    this.#whole = { start: overview.range[0], end: overview.range[1] };
    this.#view = this.#whole;
    overview.lanes.forEach((lane, i) => {
      if (lane.kind === "api") this.#folded.add(i);
    });
    this.#stage = h("div", { class: "ep-stage" }, this.#labels, this.#canvas);
    this.#content = h("div", { class: "ep-content" }, this.#stage);
    this.#scroller = h("div", { class: "ep-scroller" }, this.#content);
    this.element = h(
      "div",
      {
        class: "ep-timeline",
        tabindex: "0",
        role: "application",
        "aria-label":
          "Timeline. W and S zoom, A and D or the arrows move, 0 shows all, Escape clears the selection.",
      },
      this.#scroller,
      this.#tip,
    );
    this.#renderer = new Canvas2dRenderer(this.#canvas);
    this.#relayout();
    this.#showHint();
    this.#scroller.addEventListener("scroll", () => this.draw());
    listen(this.element, this.#canvas, this.#gestures(), options.greedyWheel);
    new ResizeObserver(() => this.#resize()).observe(this.#scroller);
  }

  /** The panel with details, to be placed below. */
  get panel(): HTMLElement {
    return this.#panel;
  }

  setTheme(theme: Theme): void {
    this.#theme = theme;
    this.draw();
  }

  draw(): void {
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#drawNow();
    });
  }

  /** Glides to a stretch of time, with a little around it. */
  show(stretch: Range): void {
    this.#glide(around(stretch, this.#whole));
  }

  /** Lights all ops for which `wanted` holds, with what they launched; shows where they are. */
  selectOps(wanted: (op: number) => boolean): void {
    const { op } = this.#events;
    const found = Array.from({ length: op.length }, (_, i) => i).filter(wanted);
    this.#light(found.length ? lightOps(this.#events, found) : null);
  }

  selectActivities(name: string): void {
    this.#light(lightActivities(this.#events, (i) => this.#events.act.name("name", i) === name));
  }

  #light(lit: Lit | null): void {
    this.#lit = lit;
    this.#showHint();
    this.draw();
  }

  select(at: Hit | null): void {
    this.#lit = at ? light(this.#events, at) : null;
    if (at) {
      const op = this.#events.op;
      const choose = (event: number): void => this.select({ set: op, event });
      this.#panel.replaceChildren(...panel(at, this.#events, choose));
    } else this.#showHint();
    this.options.selected?.(at);
    this.draw();
  }

  #showHint(): void {
    const shown = Object.entries(this.#events.shown)
      .filter(([, [sent, all]]) => sent < all)
      .map(
        ([what, [sent, all]]) =>
          `${sent.toLocaleString("en")} of ${all.toLocaleString("en")} ${what}`,
      );
    const hint =
      "Click an op to light what it launched. Scroll to zoom, drag to move (or W A S D); double-click shows all.";
    this.#panel.replaceChildren(h("p", { class: "ep-faint" }, hint));
    if (shown.length) {
      const more = this.options.load ? "; zooming in loads the rest" : "";
      const text = `Drawn are ${shown.join(", ")}, the longest of each moment${more}. All numbers count everything.`;
      this.#panel.append(h("p", { class: "ep-note" }, text));
    } else if (this.#events !== this.first) {
      this.#panel.append(h("p", { class: "ep-note" }, "Drawn is all of this window."));
    }
  }

  #gestures() {
    return {
      zoom: (factor: number, x: number) =>
        this.#setView(zoom(this.#view, this.#whole, factor, x, this.#width)),
      pan: (pixels: number) => this.#setView(pan(this.#view, this.#whole, pixels, this.#width)),
      scroll: (pixels: number) => this.#scroller.scrollBy(0, pixels),
      fit: () => this.#glide(this.#whole),
      hover: (x: number, y: number, cx: number, cy: number) => this.#hover(x, y, cx, cy),
      leave: () => this.#tip.toggleAttribute("hidden", true),
      click: (x: number, y: number) => this.select(this.#hitAt(x, y)),
      clear: () => this.select(null),
      width: () => this.#width,
    };
  }

  #setView(view: Range): void {
    this.#view = view;
    this.#tip.hidden = true;
    this.draw();
    if (!this.options.load || !this.first.thinned) return;
    clearTimeout(this.#settle);
    this.#settle = window.setTimeout(() => void this.#refresh(), SETTLE_MS);
  }

  async #refresh(): Promise<void> {
    const number = ++this.#request;
    const events = await this.options.load?.(this.#view, this.#width);
    // A later window may have been asked for meanwhile.
    if (!events || number !== this.#request) return;
    this.#events = events;
    this.#lit = null;
    this.#showHint();
    this.#relayout();
    this.draw();
  }

  #glide(to: Range): void {
    const from = this.#view;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const began = performance.now();
    const step = (now: number): void => {
      const part = still ? 1 : Math.min((now - began) / GLIDE_MS, 1);
      const eased = 1 - (1 - part) ** 3;
      const start = from.start + (to.start - from.start) * eased;
      const end = from.end + (to.end - from.end) * eased;
      this.#setView(part < 1 ? { start, end } : clamp(to, this.#whole));
      if (part < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  #headHeight(): number {
    return RULER + this.overview.busy.length * (BUSY + BUSY_GAP);
  }

  #relayout(): void {
    this.#placed = place(this.overview.lanes, this.#events, this.#folded);
    const head = this.#headHeight();
    const all = head + total(this.#placed);
    this.#height = Math.min(all, this.options.maxHeight);
    this.#content.style.height = `${all}px`;
    this.#scroller.style.height = `${this.#height}px`;
    this.#stage.style.height = `${this.#height}px`;
    this.#buildLabels(head);
    this.#resize();
  }

  #buildLabels(head: number): void {
    const device = this.overview.summary.device_word;
    const busy = this.overview.busy.map((curve, i) => {
      const name = this.overview.busy.length > 1 ? `${device} ${curve.device}` : `${device} busy`;
      const label = h("div", { class: "ep-label", title: curve.name }, name);
      label.style.top = `${RULER + i * (BUSY + BUSY_GAP)}px`;
      label.style.height = `${BUSY}px`;
      return label;
    });
    const lanes = this.#placed.map(({ lane, index, y, height, folded }) => {
      const label = h("div", { class: `ep-label ep-label-${lane.kind}`, title: lane.title });
      if (lane.kind === "api") {
        const button = h(
          "button",
          { type: "button", class: "ep-fold", "aria-expanded": String(!folded) },
          `${folded ? "▸" : "▾"} ${lane.label}`,
        );
        button.addEventListener("click", () => this.#fold(index));
        label.append(button);
      } else label.append(h("span", {}, lane.label));
      label.style.top = `${y}px`;
      label.style.height = `${Math.max(height, 12)}px`;
      return label;
    });
    this.#laneLabels.replaceChildren(...lanes);
    const clipped = h("div", { class: "ep-clip" }, this.#laneLabels);
    clipped.style.top = `${head}px`;
    this.#labels.replaceChildren(...busy, clipped);
  }

  #fold(index: number): void {
    if (!this.#folded.delete(index)) this.#folded.add(index);
    this.#relayout();
    this.draw();
  }

  #resize(): void {
    const width = this.#stage.clientWidth - this.#labels.offsetWidth;
    if (width <= 0) return;
    this.#width = width;
    this.#renderer.resize(width, this.#height, window.devicePixelRatio || 1);
    this.#drawNow();
  }

  #drawNow(): void {
    if (!this.#width) return;
    const view = this.#view;
    const scroll = this.#scroller.scrollTop;
    const head = this.#headHeight();
    this.#laneLabels.style.transform = `translateY(${-scroll}px)`;
    const r = this.#renderer;
    r.begin({
      view,
      width: this.#width,
      height: this.#height,
      palette: palette(this.#theme),
      lit: this.#lit,
    });
    const { step, times } = ticks(view, this.#width);
    r.ruler(
      times,
      times.map((time) => tickLabel(time, step, view)),
      RULER,
    );
    this.overview.busy.forEach((curve, i) => {
      r.busy(curve, RULER + i * (BUSY + BUSY_GAP), BUSY);
    });
    r.clip(head, this.#height);
    for (const lane of this.#placed) {
      const y = head + lane.y - scroll;
      if (y > this.#height || y + lane.height < head) continue;
      r.separator(y - 4);
      for (const { slice, band } of lane.bands)
        r.slice(slice, { ...band, y: head + band.y - scroll });
    }
    r.end();
  }

  #hitAt(x: number, y: number): Hit | null {
    const head = this.#headHeight();
    if (y < head) return null;
    const slices = slicesAt(this.#placed, y - head + this.#scroller.scrollTop);
    return hit(slices, this.#view, this.#width, x);
  }

  #hover(x: number, y: number, clientX: number, clientY: number): void {
    const at = this.#hitAt(x, y);
    const curve = this.overview.busy[Math.floor((y - RULER) / (BUSY + BUSY_GAP))];
    this.#canvas.classList.toggle("ep-over", at !== null);
    if (at) this.#tip.replaceChildren(...tooltip(at));
    else if (curve && y >= RULER && y < this.#headHeight()) {
      const stretch = {
        start: toTime(x - 2, this.#view, this.#width),
        end: toTime(x + 2, this.#view, this.#width),
      };
      this.#tip.replaceChildren(`${curve.name}: busy ${percent(utilisation(curve, stretch))} here`);
    } else {
      this.#tip.hidden = true;
      return;
    }
    this.#tip.hidden = false;
    const box = this.element.getBoundingClientRect();
    const tip = this.#tip.getBoundingClientRect();
    const left = Math.max(Math.min(clientX - box.left + 14, box.width - tip.width - 6), 4);
    // What holds the viewer may clip: below the pointer, else above it, else at the lower edge.
    const viewer = this.element.closest(".ep-viewer")?.getBoundingClientRect() ?? box;
    const bottom = Math.min(viewer.bottom, window.innerHeight) - 4;
    const above = clientY - tip.height - 12;
    const fits = clientY + 16 + tip.height <= bottom;
    const top = fits ? clientY + 16 : above >= viewer.top ? above : bottom - tip.height;
    this.#tip.style.left = `${left}px`;
    this.#tip.style.top = `${top - box.top}px`;
  }
}
