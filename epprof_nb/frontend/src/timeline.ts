// The timeline: puts its parts together and draws frames. Each part is a module of its own.

import { Arrangement } from "./arrangement.ts";
import { BoxZoom } from "./boxzoom.ts";
import { Chosen } from "./chosen.ts";
import { Corner } from "./corner.ts";
import { h } from "./dom.ts";
import { drawFrame } from "./drawing.ts";
import { Flows } from "./flows.ts";
import { Frames } from "./frames.ts";
import type { Geometry } from "./geometry.ts";
import { openHelp } from "./help.ts";
import { listen } from "./interact.ts";
import { Keys } from "./keys.ts";
import { Labels } from "./labels.ts";
import { Layout } from "./layout.ts";
import { Loading } from "./loading.ts";
import { Measure } from "./measure.ts";
import { MINIMAP, Minimap } from "./minimap.ts";
import { Missing } from "./missing.ts";
import type { Events, Overview } from "./model.ts";
import { GESTURES, moves } from "./moves.ts";
import { type Overlay, Overlays } from "./overlay.ts";
import { Painter } from "./painter.ts";
import { extentOf, Pointing } from "./pointing.ts";
import { Recount } from "./recount.ts";
import { type Range, toward } from "./scale.ts";
import { toScroll } from "./sight.ts";
import { Stage } from "./stage.ts";
import { Status } from "./status.ts";
import type { Supply } from "./supply.ts";
import { palette, type Theme } from "./theme.ts";
import { Tracks } from "./tracks.ts";
import { Viewport } from "./viewport.ts";
import { type Ref, rangeOf } from "./wanted.ts";

export interface TimelineOptions {
  /** Height of the lanes' window at most, pixels. */
  maxHeight: number;
  greedyWheel: boolean;
}

export class Timeline {
  readonly element: HTMLElement;
  readonly viewport: Viewport;
  readonly chosen: Chosen;
  /** Commands of the keyboard; others add theirs. */
  readonly keys = new Keys();
  readonly #stage: Stage;
  readonly #labels: Labels;
  /** What is folded and pinned. */
  readonly arrangement: Arrangement;
  readonly #layout: Layout;
  readonly #tracks: Tracks;
  readonly #corner: Corner;
  readonly #minimap: Minimap;
  readonly #recount: Recount;
  readonly #pointing: Pointing;
  readonly #status = new Status();
  readonly #renderer: Painter;
  readonly #overlays = new Overlays();
  readonly #missing: Missing;
  readonly #loading: Loading;
  readonly #frames = new Frames(() => this.#drawNow());
  readonly #ended = new AbortController();
  readonly #resizes = new ResizeObserver(() => this.#resize());
  #events: Events;
  #theme: Theme = "light";

  constructor(
    readonly overview: Overview,
    first: Events,
    readonly supply: Supply,
    options: TimelineOptions,
  ) {
    this.#events = first;
    this.viewport = new Viewport({ start: overview.range[0], end: overview.range[1] });
    this.#missing = new Missing(this.viewport.whole);
    this.add(this.#missing);
    const flows = new Flows(() => this.draw());
    this.add(flows);
    this.chosen = new Chosen(first, supply, {
      draw: () => this.draw(),
      show: (stretch) => this.viewport.show(stretch),
      reveal: (ref) => this.reveal(ref),
      relight: () => {
        this.#loading?.forget();
        this.#load();
      },
      flows: (pairs) => flows.set(pairs),
      view: () => this.viewport.view,
    });
    this.#loading = new Loading(overview, supply, first, {
      use: (more, sent) => this.#use(more, sent),
      say: (text) => this.#status.say(text),
    });
    this.arrangement = new Arrangement(overview.lanes, () => this.#relayout());
    this.#layout = new Layout(overview, this.arrangement, options.maxHeight - MINIMAP);
    this.#labels = new Labels({
      fold: (key) => this.arrangement.toggleFold(key),
      pin: (key) => this.arrangement.togglePin(key),
      resized: () => this.#resize(),
    });
    this.#tracks = new Tracks(overview.counters);
    this.#recount = new Recount(supply, this.viewport.whole, (bundle, window) => {
      this.#tracks.use(bundle, window);
      this.draw();
    });
    this.#minimap = new Minimap(this.viewport, (stretch) => this.#tracks.busy(stretch));
    this.#corner = new Corner(this.#labels.corner, {
      fold: () => this.arrangement.toggleAll(this.foldable()),
      help: () => openHelp(this.keys, this.element),
    });
    this.#stage = new Stage(this.#labels.element);
    this.element = h(
      "div",
      {
        class: "ep-timeline",
        tabindex: "0",
        role: "application",
        "aria-label":
          "Timeline. W and S zoom, A and D or the arrows move, 0 shows all; the question mark lists all keys.",
      },
      this.#minimap.element,
      this.#stage.scroller,
      this.#status.element,
    );
    this.#pointing = this.#point();
    this.element.append(this.#pointing.tip.element);
    this.#renderer = new Painter(this.#stage.canvas, () => this.draw());
    this.#relayout();
    const measure = new Measure({
      event: () => this.#eventInMind(),
      geometry: () => this.geometry,
      isDown: (key) => this.keys.isDown(key),
      redraw: () => this.draw(),
    });
    this.add(new BoxZoom(this.viewport, () => this.draw()));
    this.add(measure);
    this.keys.tell(...GESTURES);
    this.keys.add(...moves(this), ...measure.commands);
    const moved = (): void => {
      this.draw();
      this.#load();
    };
    this.viewport.watch(() => {
      this.#pointing.tip.hide();
      moved();
      this.#recount.want(this.viewport.view, this.viewport.width);
    });
    const { signal } = this.#ended;
    const { scroller, canvas } = this.#stage;
    scroller.addEventListener("scroll", moved, { signal });
    listen(this.element, canvas, this.#pointing, this.keys, options.greedyWheel, signal);
    this.#resizes.observe(scroller);
    void this.#count();
  }

  /** The events that are drawn now. */
  get events(): Events {
    return this.#events;
  }

  /** Where everything lies in the frame to be drawn now. */
  get geometry(): Geometry {
    const { viewport } = this;
    return this.#layout.geometry(viewport, palette(this.#theme), this.#stage.scrolled);
  }

  /** Adds an overlay on top of those there are; the result takes it away. */
  add(overlay: Overlay): () => void {
    const remove = this.#overlays.add(overlay);
    this.draw();
    return () => {
      remove();
      this.draw();
    };
  }

  setTheme(theme: Theme): void {
    this.#theme = theme;
    this.draw();
  }

  /** Draws a frame when the browser next paints. */
  draw(): void {
    this.#frames.ask();
  }

  /** Scrolls the lanes. */
  scroll(pixels: number): void {
    this.#stage.scroller.scrollBy(0, pixels);
  }

  /** Brings an event into sight: glides in time, scrolls among the lanes. */
  reveal(ref: Ref): void {
    const { viewport } = this;
    viewport.glide(toward(viewport.view, viewport.width, rangeOf(ref)));
    const folded = this.#layout.foldOf(ref.lane);
    if (folded) this.arrangement.toggleFold(folded);
    this.scroll(toScroll(ref, this.geometry));
  }

  /** Keys of the rows that can be folded. */
  foldable(): string[] {
    return this.#layout.foldable;
  }

  /** The lane that a key means: of the label with the focus, under the pointer, of what is chosen. */
  laneInMind(): string | null {
    const { at } = this.chosen;
    const { last } = this.#pointing;
    const pointed = last && this.geometry.rowAt(last.y)?.key;
    return this.#labels.focused ?? pointed ?? (at ? `lane:${at.lane}` : null);
  }

  #eventInMind(): Range | null {
    const { at } = this.chosen;
    if (at) return rangeOf(at);
    const under = this.#pointing.last?.hit;
    return under ? extentOf(under) : null;
  }

  /** Lets go of everything that would outlive the element. */
  destroy(): void {
    this.#ended.abort();
    this.#resizes.disconnect();
    this.#frames.destroy();
    this.viewport.destroy();
    this.#loading.destroy();
    this.#recount.destroy();
    this.#renderer.destroy();
    this.element.remove();
  }

  #use(events: Events, sent: Range): void {
    this.#events = events;
    this.#missing.sent = sent;
    this.chosen.use(events);
    const { height, all } = this.#layout;
    this.#layout.place(events);
    // As a rule only what is in the rows has changed.
    if (this.#layout.height !== height || this.#layout.all !== all) this.#fit();
    this.draw();
  }

  /** Has what the window needs, where it is not there already. */
  #load(): void {
    if (this.viewport.width) this.#loading.want(this.geometry);
  }

  async #count(): Promise<void> {
    try {
      this.#tracks.use(await this.supply.counters());
      this.#minimap.renew();
      this.draw();
    } catch {
      // Without counters there is still the timeline; the strips say that they are being counted.
    }
  }

  #point(): Pointing {
    const timeline = this;
    return new Pointing(this.element, this.#stage.canvas, {
      get geometry() {
        return timeline.geometry;
      },
      viewport: this.viewport,
      overlays: this.#overlays,
      scroll: (pixels) => this.scroll(pixels),
      select: (hit) => this.chosen.select(hit),
      tell: (counter, stretch) => this.#tracks.tell(counter, stretch, this.viewport.whole),
      describe: this.supply.live ? (event) => this.supply.describe(event) : undefined,
    });
  }

  #relayout(): void {
    this.#layout.place(this.#events);
    this.#fit();
    this.draw();
  }

  #fit(): void {
    this.#stage.setHeight(this.#layout.all, this.#layout.height);
    this.#resize();
  }

  #resize(): void {
    const { width } = this.#stage;
    if (width <= 0) return;
    this.viewport.width = width;
    this.#minimap.resize(this.#labels.element.offsetWidth, width);
    this.#renderer.resize(width, this.#layout.height, window.devicePixelRatio || 1);
    this.#drawNow();
  }

  #drawNow(): void {
    const { geometry } = this;
    if (!geometry.width) return;
    const { view } = geometry;
    // For tests and other programs that read the page.
    this.element.dataset.start = String(Math.round(view.start));
    this.element.dataset.end = String(Math.round(view.end));
    this.#minimap.draw();
    drawFrame(geometry, this.chosen.lit, {
      renderer: this.#renderer,
      labels: this.#labels,
      tracks: this.#tracks,
      overlays: this.#overlays,
      corner: this.#corner,
    });
  }
}
