// The timeline: connects its parts and draws frames.

import { FrameScheduler } from "../base/animation_frame.ts";
import { h } from "../base/dom.ts";
import { bringIntoView, type Range } from "../base/time_scale.ts";
import { Viewport } from "../base/viewport.ts";
import { CounterLoader } from "../data/counter_loader.ts";
import type { DataSource } from "../data/data_source.ts";
import type { Events } from "../data/events.ts";
import { rangeOf } from "../data/selection_queries.ts";
import type { EventRef, ProfileHeader } from "../data/wire_types.ts";
import { CanvasRenderer } from "../render/canvas_renderer.ts";
import { palette, type Theme } from "../render/palettes.ts";
import { SelectionController } from "../selection/controller.ts";
import { Colouring } from "./colouring.ts";
import { Corner } from "./corner.ts";
import { CounterTracks } from "./counter_tracks.ts";
import { drawFrame } from "./frame.ts";
import type { Geometry } from "./geometry.ts";
import { openHelp } from "./input/help_dialog.ts";
import { GESTURES, navigationKeys } from "./input/navigation_keys.ts";
import { extentOf, PointerHandler } from "./input/pointer.ts";
import { Shortcuts } from "./input/shortcut_registry.ts";
import { listen } from "./input/wheel_and_drag.ts";
import { LaneLabels } from "./lane_labels.ts";
import { LaneState } from "./lane_state.ts";
import { areByProcess } from "./lanes.ts";
import { MINIMAP, Minimap } from "./minimap.ts";
import { BoxZoom } from "./overlays/box_zoom.ts";
import { FlowOverlay } from "./overlays/flows.ts";
import { type Overlay, Overlays, type PointerAt } from "./overlays/overlay.ts";
import { RepeatMarks } from "./overlays/repeat_marks.ts";
import { RulerMeasure } from "./overlays/ruler_measure.ts";
import { UnloadedOverlay } from "./overlays/unloaded.ts";
import { RowLayout } from "./row_layout.ts";
import { ScrollArea } from "./scroll_area.ts";
import { scrollIntoView } from "./scroll_into_view.ts";
import { StatusLine } from "./status_line.ts";
import { WindowLoader } from "./window_loader.ts";

interface TimelineOptions {
  /** Maximum height of the timeline in pixels. */
  maxHeight: number;
  greedyWheel: boolean;
}

export class Timeline {
  readonly element: HTMLElement;
  readonly viewport: Viewport;
  readonly selection: SelectionController;
  /** Keyboard shortcuts; other modules add theirs. */
  readonly shortcuts = new Shortcuts();
  readonly #scrollArea: ScrollArea;
  readonly #labels: LaneLabels;
  /** Folded and pinned rows. */
  readonly laneState: LaneState;
  /** Choice of what the colours of events mean. */
  readonly colouring: Colouring;
  readonly #layout: RowLayout;
  readonly tracks: CounterTracks;
  readonly #corner: Corner;
  readonly #minimap: Minimap;
  readonly #counterLoader: CounterLoader;
  readonly #pointer: PointerHandler;
  readonly #status = new StatusLine();
  readonly #renderer: CanvasRenderer;
  readonly #overlays = new Overlays();
  readonly #unloaded: UnloadedOverlay;
  readonly #windows: WindowLoader;
  readonly #frames = new FrameScheduler(() => this.#drawNow());
  readonly #destroyed = new AbortController();
  readonly #resizes = new ResizeObserver(() => this.#resize());
  #events: Events;
  #theme: Theme = "light";

  constructor(
    readonly header: ProfileHeader,
    first: Events,
    readonly source: DataSource,
    options: TimelineOptions,
  ) {
    this.#events = first;
    this.colouring = new Colouring(first, header.kinds_present.length > 0, header.operators, () => {
      this.colouring.apply(this.#events);
      this.draw();
    });
    this.colouring.apply(first);
    this.viewport = new Viewport({ start: header.range[0], end: header.range[1] });
    this.#unloaded = new UnloadedOverlay(this.viewport.whole);
    this.add(this.#unloaded);
    const flows = new FlowOverlay(() => this.draw());
    this.add(flows);
    this.selection = new SelectionController(first, source, {
      draw: () => this.draw(),
      show: (range) => this.viewport.show(range),
      reveal: (ref) => this.reveal(ref),
      highlightChanged: () => {
        if (!source.live) return;
        this.#windows?.clear();
        this.#loadWindow();
      },
      setFlows: (pairs) => flows.set(pairs),
      view: () => this.viewport.view,
      devices: header.devices,
      wheelHint: options.greedyWheel ? "Scroll to zoom." : "After a click, scrolling zooms.",
    });
    this.#windows = new WindowLoader(header, source, first, {
      use: (more, sent) => this.#showEvents(more, sent),
      say: (text) => this.#status.show(text),
    });
    this.laneState = new LaneState(header.lanes, () => this.#relayout());
    this.#layout = new RowLayout(header, this.laneState, options.maxHeight - MINIMAP);
    this.#labels = new LaneLabels(
      {
        fold: (key) => this.laneState.toggleFold(key),
        pin: (key) => this.laneState.togglePin(key),
        resized: () => this.#resize(),
      },
      header.lanes.map(({ label }) => label),
      areByProcess(header.lanes),
    );
    this.tracks = new CounterTracks(header.counters);
    this.#counterLoader = new CounterLoader(source, this.viewport.whole, (bundle, window) => {
      this.tracks.use(bundle, window);
      this.draw();
    });
    this.#minimap = new Minimap(this.viewport, (range) => this.tracks.busy(range));
    this.#corner = new Corner(this.#labels.corner, {
      fold: () => this.laneState.toggleAll(this.foldable()),
      help: () => openHelp(this.shortcuts, this.element),
    });
    this.#scrollArea = new ScrollArea(this.#labels.element);
    this.element = h(
      "div",
      {
        class: "ep-timeline",
        tabindex: "0",
        role: "application",
        "aria-label":
          "Timeline. W and S zoom, A and D or the arrow keys move, 0 shows all, the question mark lists all keys.",
      },
      this.#minimap.element,
      this.#scrollArea.scroller,
      this.#status.element,
    );
    this.#pointer = this.#makePointer();
    this.element.append(this.#pointer.tip.element);
    this.#renderer = new CanvasRenderer(this.#scrollArea.canvas, () => this.draw());
    this.#relayout();
    const measure = new RulerMeasure({
      event: () => this.#targetEvent(),
      geometry: () => this.geometry,
      isDown: (key) => this.shortcuts.isDown(key),
      redraw: () => this.draw(),
    });
    this.add(new RepeatMarks(header.repeats, header.repeat_names));
    this.add(new BoxZoom(this.viewport, () => this.draw()));
    this.add(measure);
    this.shortcuts.addGestures(...GESTURES);
    this.shortcuts.add(...navigationKeys(this), ...measure.commands);
    const moved = (): void => {
      this.draw();
      this.#loadWindow();
    };
    this.viewport.watch(() => {
      this.#pointer.tip.hide();
      moved();
      this.#counterLoader.request(this.viewport.view, this.viewport.width);
    });
    const { signal } = this.#destroyed;
    const { scroller, canvas } = this.#scrollArea;
    scroller.addEventListener("scroll", moved, { signal });
    listen(this.element, canvas, this.#pointer, this.shortcuts, options.greedyWheel, signal);
    this.#resizes.observe(scroller);
    void this.#loadCounters();
  }

  /** Events drawn now. */
  get events(): Events {
    return this.#events;
  }

  /** Geometry of the next frame. */
  get geometry(): Geometry {
    const { viewport } = this;
    return this.#layout.geometry(viewport, palette(this.#theme), this.#scrollArea.scrolled);
  }

  /** Maximum height of the timeline in pixels. */
  get maxHeight(): number {
    return this.#layout.maxHeight + MINIMAP;
  }

  set maxHeight(pixels: number) {
    this.#layout.maxHeight = pixels - MINIMAP;
    this.#relayout();
  }

  /** Add an overlay on top. Returns a function that removes it. */
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

  /** Draw a frame at the next repaint. */
  draw(): void {
    this.#frames.request();
  }

  /** Scroll the lanes. */
  scroll(pixels: number): void {
    this.#scrollArea.scroller.scrollBy(0, pixels);
  }

  /** Bring an event into view: animate in time, scroll the lanes. */
  reveal(ref: EventRef): void {
    const { viewport } = this;
    viewport.animateTo(bringIntoView(viewport.view, viewport.width, rangeOf(ref)));
    for (const folded of this.#layout.foldsOf(ref.lane)) this.laneState.toggleFold(folded);
    this.scroll(scrollIntoView(ref, this.geometry));
  }

  /** Keys of the rows that can be folded. */
  foldable(): string[] {
    return this.#layout.foldable;
  }

  /**
   * Lane that a shortcut acts on: of the focused label, under the pointer, or of the selected
   * event.
   */
  targetLane(): string | null {
    const { current: at } = this.selection;
    const { last } = this.#pointer;
    const pointed = last && this.geometry.rowAt(last.y)?.key;
    return this.#labels.focused ?? pointed ?? (at ? `lane:${at.lane}` : null);
  }

  /** Position of the pointer while it is over the canvas. */
  get pointed(): PointerAt | null {
    return this.#pointer.last;
  }

  #targetEvent(): Range | null {
    const { current: at } = this.selection;
    if (at) return rangeOf(at);
    const under = this.#pointer.last?.hit;
    return under ? extentOf(under) : null;
  }

  /** Release everything that would outlive the element. */
  destroy(): void {
    this.#destroyed.abort();
    this.#resizes.disconnect();
    this.#frames.destroy();
    this.viewport.destroy();
    this.#windows.destroy();
    this.#counterLoader.destroy();
    this.#renderer.destroy();
    this.element.remove();
  }

  #showEvents(events: Events, sent: Range): void {
    this.#events = events;
    this.colouring.apply(events);
    this.#unloaded.loaded = sent;
    this.selection.setEvents(events);
    const { height, totalHeight: all } = this.#layout;
    this.#layout.place(events);
    // Usually only the events in the rows have changed.
    if (this.#layout.height !== height || this.#layout.totalHeight !== all) this.#fit();
    this.draw();
  }

  /** Request the events of the window unless they are loaded. */
  #loadWindow(): void {
    if (this.viewport.width) this.#windows.request(this.geometry);
  }

  async #loadCounters(): Promise<void> {
    try {
      this.tracks.use(await this.source.counters());
      this.#minimap.invalidate();
      this.draw();
    } catch {
      // The timeline works without counters; their rows stay empty.
    }
  }

  #makePointer(): PointerHandler {
    const timeline = this;
    return new PointerHandler(this.element, this.#scrollArea.canvas, {
      get geometry() {
        return timeline.geometry;
      },
      viewport: this.viewport,
      overlays: this.#overlays,
      scroll: (pixels) => this.scroll(pixels),
      select: (hit) => this.selection.selectHit(hit),
      describeCounter: (counter, range) => this.tracks.describe(counter, range),
      describe: this.source.zooms ? (event) => this.source.describe(event) : undefined,
    });
  }

  #relayout(): void {
    this.#layout.place(this.#events);
    this.#fit();
    this.draw();
  }

  #fit(): void {
    this.#scrollArea.setHeight(this.#layout.totalHeight, this.#layout.height);
    this.#resize();
  }

  #resize(): void {
    const { width } = this.#scrollArea;
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
    // For tests and other readers of the page.
    this.element.dataset.start = String(Math.round(view.start));
    this.element.dataset.end = String(Math.round(view.end));
    this.#minimap.draw();
    drawFrame(geometry, this.selection.highlight, {
      renderer: this.#renderer,
      labels: this.#labels,
      tracks: this.tracks,
      overlays: this.#overlays,
      corner: this.#corner,
    });
  }
}
