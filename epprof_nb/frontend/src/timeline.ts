// The timeline: puts its parts together and draws frames. Each part is a module of its own.

import { Arrangement } from "./arrangement.ts";
import { BoxZoom } from "./boxzoom.ts";
import { Chosen } from "./chosen.ts";
import { Corner } from "./corner.ts";
import { h } from "./dom.ts";
import { bandOf, Flows } from "./flows.ts";
import { Geometry } from "./geometry.ts";
import { openHelp } from "./help.ts";
import { listen } from "./interact.ts";
import { Keys } from "./keys.ts";
import { Labels } from "./labels.ts";
import { type PlacedLane, place, type Rows, rows, total } from "./lanes.ts";
import { Loader } from "./loader.ts";
import { Measure } from "./measure.ts";
import { MINIMAP, Minimap } from "./minimap.ts";
import type { Events, Overview } from "./model.ts";
import { GESTURES, moves } from "./moves.ts";
import { type Overlay, Overlays } from "./overlay.ts";
import { extentOf, Pointing } from "./pointing.ts";
import { Recount } from "./recount.ts";
import { createRenderer, type Renderer } from "./renderer.ts";
import { rulerLabels } from "./ruler.ts";
import { type Range, ticks, toward } from "./scale.ts";
import { Stage } from "./stage.ts";
import { Status } from "./status.ts";
import type { Supply } from "./supply.ts";
import { palette, type Theme } from "./theme.ts";
import { Tracks } from "./tracks.ts";
import { Viewport } from "./viewport.ts";
import { type Ref, rangeOf } from "./wanted.ts";

const RULER = 22;
/** An event this near to the upper or lower edge is scrolled into sight. */
const SIGHT = 24;
/** Lanes have at least so many pixels, however much is pinned above them. */
const LEAST_LANES = 60;
/** Of more lanes only those in view are asked for at full resolution. */
const FEW_LANES = 48;
/** Pixels of the first picture, as views/pack.py has it. */
const FIRST_WIDTH = 1200;

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
  readonly #tracks: Tracks;
  readonly #corner: Corner;
  readonly #minimap: Minimap;
  readonly #recount: Recount;
  readonly #pointing: Pointing;
  readonly #status = new Status();
  readonly #renderer: Renderer;
  readonly #overlays = new Overlays();
  readonly #loader: Loader | null;
  readonly #ended = new AbortController();
  readonly #resizes = new ResizeObserver(() => this.#resize());
  readonly #maxHeight: number;
  #events: Events;
  #sticky: PlacedLane[] = [];
  #lanes: PlacedLane[] = [];
  #theme: Theme = "light";
  #height = 0;
  #frame = 0;

  constructor(
    readonly overview: Overview,
    first: Events,
    readonly supply: Supply,
    options: TimelineOptions,
  ) {
    this.#events = first;
    this.viewport = new Viewport({ start: overview.range[0], end: overview.range[1] });
    const flows = new Flows(() => this.draw());
    this.add(flows);
    this.chosen = new Chosen(first, supply, {
      draw: () => this.draw(),
      show: (stretch) => this.viewport.show(stretch),
      reveal: (ref) => this.reveal(ref),
      relight: () => {
        this.#loader?.forget();
        this.#load();
      },
      flows: (pairs) => flows.set(pairs),
    });
    this.#loader = supply.live
      ? new Loader(
          supply,
          this.viewport.whole,
          (more) => this.#use(more),
          (text) => this.#status.say(text),
        )
      : null;
    this.#loader?.add({ view: this.viewport.whole, width: FIRST_WIDTH, lanes: null }, first);
    this.#maxHeight = options.maxHeight;
    this.arrangement = new Arrangement(overview.lanes, () => this.#relayout());
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
    this.#renderer = createRenderer(this.#stage.canvas, { redraw: () => this.draw() });
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
    this.viewport.watch(() => {
      this.#pointing.tip.hide();
      this.draw();
      this.#load();
      this.#recount.want(this.viewport.view, this.viewport.width);
    });
    const { signal } = this.#ended;
    const { scroller, canvas } = this.#stage;
    scroller.addEventListener(
      "scroll",
      () => {
        this.draw();
        this.#load();
      },
      { signal },
    );
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
    return new Geometry({
      view: this.viewport.view,
      width: this.viewport.width,
      height: this.#height,
      palette: palette(this.#theme),
      ruler: RULER,
      head: this.#headHeight(),
      scroll: this.#stage.scrolled,
      sticky: this.#sticky,
      lanes: this.#lanes,
    });
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
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#drawNow();
    });
  }

  /** Scrolls the lanes. */
  scroll(pixels: number): void {
    this.#stage.scroller.scrollBy(0, pixels);
  }

  /** Brings an event into sight: glides in time, scrolls among the lanes. */
  reveal(ref: Ref): void {
    const { viewport } = this;
    viewport.glide(toward(viewport.view, viewport.width, rangeOf(ref)));
    const folded = rows(this.#rows).find(({ index }) => index === ref.lane)?.parent;
    if (folded && this.arrangement.folded.has(folded)) this.arrangement.toggleFold(folded);
    const { geometry } = this;
    const lane = geometry.lanes.find(({ index }) => index === ref.lane);
    if (!lane) return;
    const y = bandOf(lane, ref.level).y + geometry.offset(lane);
    if (y < geometry.head + SIGHT) this.scroll(y - geometry.head - SIGHT);
    else if (y > geometry.height - SIGHT) this.scroll(y - geometry.height + SIGHT);
  }

  /** Keys of the rows that can be folded. */
  foldable(): string[] {
    return rows(this.#rows).flatMap(({ key, folded }) => (folded === null ? [] : [key]));
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
    cancelAnimationFrame(this.#frame);
    this.viewport.destroy();
    this.#loader?.destroy();
    this.#recount.destroy();
    this.#renderer.destroy();
    this.element.remove();
  }

  #use(events: Events): void {
    this.#events = events;
    this.chosen.use(events);
    this.#relayout();
  }

  /** Has what the window needs, where it is not there already. */
  #load(): void {
    const { geometry, viewport } = this;
    if (!this.#loader || !viewport.width) return;
    const all = this.overview.lanes.length;
    let lanes: [number, number] | null = null;
    if (all > FEW_LANES) {
      const shown = [...this.#sticky, ...this.#inView(geometry)]
        .map(({ index }) => index)
        .filter((index) => index >= 0);
      // A screenful more below and above: scrolling a little finds them there.
      lanes = shown.length
        ? [Math.min(...shown) - shown.length, Math.max(...shown) + 1 + shown.length]
        : [0, FEW_LANES];
      lanes = [Math.max(lanes[0], 0), Math.min(lanes[1], all)];
    }
    this.#loader.want({ view: viewport.view, width: viewport.width, lanes });
  }

  #inView({ head, height, scroll }: Geometry): PlacedLane[] {
    return this.#lanes.filter(({ y, height: tall }) => {
      const top = y + head - scroll;
      return top < height && top + tall >= head;
    });
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
    });
  }

  get #rows(): Rows {
    const { lanes, counters, summary } = this.overview;
    return { lanes, counters, word: summary.device_word };
  }

  #headHeight(): number {
    return RULER + total(this.#sticky);
  }

  #relayout(): void {
    const placed = place(this.#rows, this.#events, this.arrangement);
    this.#sticky = placed.sticky;
    this.#lanes = placed.lanes;
    const head = this.#headHeight();
    const all = head + total(this.#lanes);
    const most = this.#maxHeight - MINIMAP;
    this.#height = Math.min(all, Math.max(most, head + LEAST_LANES));
    this.#stage.setHeight(all, this.#height);
    this.#resize();
    this.draw();
  }

  #resize(): void {
    const { width } = this.#stage;
    if (width <= 0) return;
    this.viewport.width = width;
    this.#minimap.resize(this.#labels.element.offsetWidth, width);
    this.#renderer.resize(width, this.#height, window.devicePixelRatio || 1);
    this.#drawNow();
  }

  #drawNow(): void {
    const { geometry } = this;
    const { view, width, height, head } = geometry;
    if (!width) return;
    const inView = this.#inView(geometry);
    this.#labels.show(this.#sticky, inView, RULER, head, geometry.scroll);
    this.#minimap.draw();
    // For tests and other programs that read the page.
    this.element.dataset.start = String(Math.round(view.start));
    this.element.dataset.end = String(Math.round(view.end));
    const r = this.#renderer;
    r.begin({ view, width, height, palette: geometry.palette, lit: this.chosen.lit });
    const { step, times } = ticks(view, width);
    const { base, labels } = rulerLabels(times, step, view);
    r.ruler(times, labels, RULER);
    for (const overlay of this.#overlays.all) overlay.under?.(r, geometry);
    r.clip(RULER, head);
    for (const row of this.#sticky) this.#drawRow(row, geometry);
    r.clip(head, height);
    for (const row of inView) this.#drawRow(row, geometry);
    r.clip(0, height);
    for (const overlay of this.#overlays.all) overlay.draw?.(r, geometry);
    r.end();
    const foldable = [...this.#sticky, ...this.#lanes].filter(({ folded }) => folded !== null);
    this.#corner.show(
      base,
      foldable.every(({ folded }) => folded),
    );
  }

  #drawRow(row: PlacedLane, geometry: Geometry): void {
    const r = this.#renderer;
    const offset = geometry.offset(row);
    if (row.counter !== null) {
      const scale = this.#tracks.draw(r, row.counter, geometry, row.y + offset, row.height);
      this.#labels.scale(row.key, scale);
    } else r.separator(row.y + offset - 4);
    for (const { slice, band } of row.bands) r.slice(slice, { ...band, y: band.y + offset });
  }
}
