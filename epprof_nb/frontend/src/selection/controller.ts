// The current selection, its highlight and its panel. A selection is one event, all events of a
// kind or name, the matches of a search, or the rows of a DataFrame; it stays selected whichever
// events are drawn.

import { h, signButton } from "../base/dom.ts";
import { position } from "../base/format.ts";
import type { Range } from "../base/time_scale.ts";
import type { DataSource } from "../data/data_source.ts";
import { highlightFor, outlineOf } from "../data/embedded/selected_events.ts";
import type { Events, Fields, Highlight, Hit } from "../data/events.ts";
import { mergedEventsNote } from "../data/merged_events_note.ts";
import {
  fieldsOf,
  hitOf,
  type Related,
  rangeOf,
  refOf,
  type SelectionQuery,
  sameRef,
} from "../data/selection_queries.ts";
import type { DeviceLabels, EventRef, SeekResult } from "../data/wire_types.ts";
import { mergedNote, panel } from "./event_details.ts";

const HINT =
  "Click an event for its details. Drag on the ruler to mark a time range; ? lists all keys.";

/** Time the view must rest before the flows of the new window are requested. */
const PAUSE_MS = 300;

/** The part of the timeline that the selection uses. */
interface TimelineActions {
  draw(): void;
  /** Animate to a time range. */
  show(range: Range): void;
  /** Scroll and pan so that an event becomes visible. */
  reveal(ref: EventRef): void;
  /** Request the window again where Python computes the highlight. */
  highlightChanged(): void;
  setFlows(pairs: Related["flows"]): void;
  /** Time range in view. */
  view(): Range;
  devices: DeviceLabels;
  /** How scrolling zooms. */
  wheelHint: string;
}

export class SelectionController {
  readonly panel = h("div", { class: "ep-panel", "aria-live": "polite" });
  #query: SelectionQuery | null = null;
  #current: EventRef | null = null;
  /** Relations of the current event, once loaded. */
  #related: Related | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #extent: Range | null = null;
  #range: Range | null = null;
  #highlight: Highlight | null = null;
  /** Label and position when several events are selected. */
  #multi: { label: string; found: SeekResult; exact: string | undefined } | null = null;
  #events: Events;
  readonly #note = h("p", { class: "ep-note" });
  /** Note on the rectangle that the current event is drawn as. */
  readonly #merged = h("p", { class: "ep-note" });
  readonly #actions = {
    select: (ref: EventRef) => this.selectEvent(ref),
    show: (range: Range) => this.timeline.show(range),
  };

  constructor(
    private readonly first: Events,
    private readonly source: DataSource,
    private readonly timeline: TimelineActions,
  ) {
    this.#events = first;
    this.#hint();
  }

  get highlight(): Highlight | null {
    return this.#highlight;
  }

  /** Event whose details are shown. */
  get current(): EventRef | null {
    return this.#current;
  }

  get query(): SelectionQuery | null {
    return this.#query;
  }

  /** Time range of the selection. */
  get extent(): Range | null {
    return this.#current ? rangeOf(this.#current) : this.#extent;
  }

  /** Draw other events; the selection stays. */
  setEvents(events: Events): void {
    this.#events = events;
    this.#updateHighlight();
    this.#updateMerged();
    if (!this.#query) this.#hint();
    clearTimeout(this.#timer);
    const at = this.#current;
    const more = this.#related && this.#related.flows.length < this.#related.launched;
    if (at && more && this.source.live)
      this.#timer = setTimeout(() => void this.#reloadFlows(at), PAUSE_MS);
  }

  /** Select the clicked event; null clears the selection. */
  selectHit(hit: Hit | null): void {
    if (hit) this.#selectEvent(refOf(hit));
    else this.clear();
  }

  /** Select any event and bring it into view. */
  selectEvent(ref: EventRef): void {
    this.#selectEvent(ref);
    this.timeline.reveal(ref);
  }

  clear(): void {
    this.#setQuery(null);
    this.#current = null;
    this.#multi = null;
    this.#extent = null;
    this.timeline.setFlows([]);
    this.#updateHighlight();
    this.#hint();
  }

  /**
   * Select and highlight all events of a query. `label` names them; `exact` is their count as text
   * where the drawn events only allow an estimate. `go` shows their time range.
   */
  async select(
    query: SelectionQuery,
    label: string,
    go = true,
    exact?: string,
  ): Promise<SeekResult | null> {
    this.#setQuery(query);
    this.#current = null;
    this.#multi = null;
    this.timeline.setFlows([]);
    this.#updateHighlight();
    let found: SeekResult;
    try {
      found = await this.source.seek(query, {});
    } catch (error) {
      if (this.#query === query)
        this.panel.replaceChildren(h("p", { class: "ep-warn" }, messageOf(error)));
      return null;
    }
    if (this.#query !== query) return null;
    this.#multi = { label, found, exact };
    this.#extent =
      found.start === null ? null : { start: found.start, end: found.end ?? found.start };
    if (go && this.#extent) this.timeline.show(this.#extent);
    this.#showMulti();
    return found;
  }

  /** Select the next or the previous event of the query. */
  async seekBy(by: 1 | -1, from?: number): Promise<SeekResult | null> {
    const [query, multi] = [this.#query, this.#multi];
    if (!query || !multi) return null;
    const now = multi.found.number;
    const where =
      now !== null
        ? { number: now + by }
        : from !== undefined
          ? { at: from }
          : { number: by > 0 ? 0 : -1 };
    const found = await this.source.seek(query, where);
    if (this.#query !== query || !found.event) return null;
    this.#multi = { ...multi, found };
    this.#current = found.event;
    this.#updateHighlight();
    this.timeline.reveal(found.event);
    void this.#describe(found.event);
    return found;
  }

  /**
   * Select the next or the previous event of the query; from a single event, go to its first launched
   * activity or to its launch.
   */
  next(by: 1 | -1): void {
    if (this.#multi) void this.seekBy(by);
    else this.#followLaunch(by);
  }

  #followLaunch(by: 1 | -1): void {
    const [at, related] = [this.#current, this.#related];
    if (!at || !related) return;
    const other = (ref: EventRef): boolean => !sameRef(ref, at);
    const { chain, call, flows } = related;
    const to =
      by < 0 ? (call ?? chain.filter(other).at(-1)) : flows.map(([, ref]) => ref).find(other);
    if (to) this.selectEvent(to);
  }

  /** Report the marked time range to Python. */
  setRange(range: Range | null): void {
    this.#range = range;
    this.source.setSelection(this.#query, range);
  }

  #selectEvent(ref: EventRef): void {
    this.#setQuery({ what: "event", prefix: ref.prefix, row: ref.row });
    this.#multi = null;
    this.#current = ref;
    this.#updateHighlight();
    void this.#describe(ref);
  }

  #setQuery(query: SelectionQuery | null): void {
    this.#query = query;
    this.source.setSelection(query, this.#range);
    this.timeline.highlightChanged();
  }

  #updateHighlight(): void {
    const query = this.#query;
    this.#highlight = query && {
      ...highlightFor(this.#events, query),
      outlined: outlineOf(this.#events, this.#current),
    };
    this.timeline.draw();
  }

  async #describe(at: EventRef): Promise<void> {
    const multi = this.#multiBar();
    this.#related = null;
    this.#updateMerged();
    const hit = hitOf(this.#events, at);
    let fields: Fields = hit ? fieldsOf(hit.set, hit.event) : {};
    const show = (related: Related | null, ...status: HTMLElement[]): void => {
      if (!sameRef(this.#current, at)) return;
      const parts = panel(at, this.#named(fields), related, this.#merged, this.#actions);
      this.panel.replaceChildren(...multi, ...parts, ...status);
    };
    const loading = h("p", { class: "ep-faint" }, "Loading the rest of the details…");
    show(null, loading);
    try {
      const [, related] = await Promise.all([
        this.source.describe(at).then((all) => {
          fields = all;
          show(null, loading);
        }),
        this.source.related(at, this.timeline.view()),
      ]);
      if (!sameRef(this.#current, at)) return;
      // The rectangle may stand for several events; the details describe the longest.
      const [start, end] = [Number(fields.start_ns), Number(fields.end_ns)];
      if (end >= start) this.#current = { ...at, start, dur: end - start };
      show(related);
      this.#showFlows(related);
    } catch (error) {
      show(null, h("p", { class: "ep-warn" }, messageOf(error)));
    }
  }

  /** Update the note on the rectangle that is drawn now; a zoom changes its events. */
  #updateMerged(): void {
    const hit = this.#current && hitOf(this.#events, this.#current);
    const parts = h("span", {});
    parts.append(...mergedNote(hit, this.#actions));
    // A button that stays the same keeps the focus.
    if (this.#merged.textContent !== parts.textContent) this.#merged.replaceChildren(parts);
    this.#merged.hidden = parts.textContent === "";
  }

  /** The fields with devices as labels: their ids may be internal. */
  #named(fields: Fields): Fields {
    const named = { ...fields };
    for (const column of ["device_id", "src_device_id", "dst_device_id"]) {
      const label = this.timeline.devices[Number(fields[column] ?? -1)];
      if (label) named[column] = label;
    }
    return named;
  }

  /** Load the flows near the window in view. */
  async #reloadFlows(at: EventRef): Promise<void> {
    if (!sameRef(this.#current, at)) return;
    try {
      const related = await this.source.related(at, this.timeline.view());
      if (sameRef(this.#current, at)) this.#showFlows(related);
    } catch {
      // The flows already drawn stay.
    }
  }

  #showFlows(related: Related): void {
    this.#related = related;
    this.timeline.setFlows(related.flows);
  }

  #showMulti(): void {
    this.panel.replaceChildren(...this.#multiBar());
  }

  #multiBar(): HTMLElement[] {
    if (!this.#multi) return [];
    const { label, found, exact } = this.#multi;
    const disabled = found.count === 0;
    const button = (sign: string, title: string, by: 1 | -1): HTMLElement =>
      signButton(sign, title, () => void this.seekBy(by), { disabled });
    const bar = h(
      "div",
      { class: "ep-seek-bar ep-multi" },
      h(
        "span",
        { class: "ep-seek" },
        button("‹", "Previous of these", -1),
        ...(found.about && exact
          ? [exact]
          : [
              h("strong", {}, position(found.number, found.count, found.about, found.drawn)),
              ` ${label}`,
            ]),
        button("›", "Next of these", 1),
      ),
    );
    return [bar];
  }

  #hint(): void {
    const complete = this.#events === this.first ? "" : "Every event of this window is drawn.";
    const note = mergedEventsNote(this.#events, this.source.zooms) || complete;
    // Do not repeat an unchanged note: screen readers would announce it again.
    if (this.#note.parentElement === this.panel && this.#note.textContent === note) return;
    this.#note.textContent = note;
    this.panel.replaceChildren(
      h("p", { class: "ep-faint ep-hint" }, `${this.timeline.wheelHint} ${HINT}`),
    );
    if (note) this.panel.append(this.#note);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
