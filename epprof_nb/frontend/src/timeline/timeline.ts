// The timeline: puts its parts together and draws frames. Each part is a module of its own.

import { Frames } from "../base/animation_frame.ts";
import { h } from "../base/dom.ts";
import { type Range, toward } from "../base/time_scale.ts";
import { Viewport } from "../base/viewport.ts";
import { CounterLoader } from "../data/counter_loader.ts";
import type { DataSource } from "../data/data_source.ts";
import type { EventRef, Events, Overview } from "../data/model.ts";
import { rangeOf } from "../data/queries.ts";
import { Painter } from "../render/canvas_renderer.ts";
import { palette, type Theme } from "../render/theme.ts";
import { SelectionController } from "../selection/controller.ts";
import { Corner } from "./corner.ts";
import { Tracks } from "./counter_tracks.ts";
import { drawFrame } from "./frame.ts";
import type { Geometry } from "./geometry.ts";
import { listen } from "./input/gestures.ts";
import { openHelp } from "./input/help_dialog.ts";
import { GESTURES, moves } from "./input/navigation.ts";
import { extentOf, Pointing } from "./input/pointer.ts";
import { Keys } from "./input/shortcuts.ts";
import { Labels } from "./lane_labels.ts";
import { Arrangement } from "./lane_state.ts";
import { MINIMAP, Minimap } from "./minimap.ts";
import { BoxZoom } from "./overlays/box_zoom.ts";
import { Flows } from "./overlays/flows.ts";
import { type Overlay, Overlays } from "./overlays/overlay.ts";
import { Measure } from "./overlays/ruler_measure.ts";
import { UnloadedOverlay } from "./overlays/unloaded.ts";
import { Layout } from "./row_layout.ts";
import { Stage } from "./scroll_area.ts";
import { toScroll } from "./scroll_into_view.ts";
import { Status } from "./status_line.ts";
import { WindowLoader } from "./window_loader.ts";

export interface TimelineOptions {
  /** Height of the lanes' window at most, pixels. */
  maxHeight: number;
  greedyWheel: boolean;
}

export class Timeline {
  readonly element: HTMLElement;
  readonly viewport: Viewport;
  readonly selection: SelectionController;
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
  readonly #counterLoader: CounterLoader;
  readonly #pointing: Pointing;
  readonly #status = new Status();
  readonly #renderer: Painter;
  readonly #overlays = new Overlays();
  readonly #unloaded: UnloadedOverlay;
  readonly #windows: WindowLoader;
  readonly #frames = new Frames(() => this.#drawNow());
  readonly #ended = new AbortController();
  readonly #resizes = new ResizeObserver(() => this.#resize());
  #events: Events;
  #theme: Theme = "light";

  constructor(
    readonly overview: Overview,
    first: Events,
    readonly source: DataSource,
    options: TimelineOptions,
  ) {
    this.#events = first;
    this.viewport = new Viewport({ start: overview.range[0], end: overview.range[1] });
    this.#unloaded = new UnloadedOverlay(this.viewport.whole);
    this.add(this.#unloaded);
    const flows = new Flows(() => this.draw());
    this.add(flows);
    this.selection = new SelectionController(first, source, {
      draw: () => this.draw(),
      show: (stretch) => this.viewport.show(stretch),
      reveal: (ref) => this.reveal(ref),
      highlightChanged: () => {
        this.#windows?.clear();
        this.#loadWindow();
      },
      setFlows: (pairs) => flows.set(pairs),
      view: () => this.viewport.view,
    });
    this.#windows = new WindowLoader(overview, source, first, {
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
    this.#counterLoader = new CounterLoader(source, this.viewport.whole, (bundle, window) => {
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
      this.#loadWindow();
    };
    this.viewport.watch(() => {
      this.#pointing.tip.hide();
      moved();
      this.#counterLoader.request(this.viewport.view, this.viewport.width);
    });
    const { signal } = this.#ended;
    const { scroller, canvas } = this.#stage;
    scroller.addEventListener("scroll", moved, { signal });
    listen(this.element, canvas, this.#pointing, this.keys, options.greedyWheel, signal);
    this.#resizes.observe(scroller);
    void this.#loadCounters();
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
  reveal(ref: EventRef): void {
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
    const { current: at } = this.selection;
    const { last } = this.#pointing;
    const pointed = last && this.geometry.rowAt(last.y)?.key;
    return this.#labels.focused ?? pointed ?? (at ? `lane:${at.lane}` : null);
  }

  #eventInMind(): Range | null {
    const { current: at } = this.selection;
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
    this.#windows.destroy();
    this.#counterLoader.destroy();
    this.#renderer.destroy();
    this.element.remove();
  }

  #use(events: Events, sent: Range): void {
    this.#events = events;
    this.#unloaded.loaded = sent;
    this.selection.setEvents(events);
    const { height, all } = this.#layout;
    this.#layout.place(events);
    // As a rule only what is in the rows has changed.
    if (this.#layout.height !== height || this.#layout.all !== all) this.#fit();
    this.draw();
  }

  /** Has what the window needs, where it is not there already. */
  #loadWindow(): void {
    if (this.viewport.width) this.#windows.request(this.geometry);
  }

  async #loadCounters(): Promise<void> {
    try {
      this.#tracks.use(await this.source.counters());
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
      select: (hit) => this.selection.selectHit(hit),
      tell: (counter, stretch) => this.#tracks.tell(counter, stretch, this.viewport.whole),
      describe: this.source.live ? (event) => this.source.describe(event) : undefined,
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
    drawFrame(geometry, this.selection.highlight, {
      renderer: this.#renderer,
      labels: this.#labels,
      tracks: this.#tracks,
      overlays: this.#overlays,
      corner: this.#corner,
    });
  }
}
