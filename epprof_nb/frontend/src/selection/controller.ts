// What is chosen and lit, and the panel that tells of it. An event, all events of a kind or name,
// a search's matches, or the rows of a DataFrame: whatever is drawn, it stays chosen.

import { h } from "../base/dom.ts";
import { position } from "../base/format.ts";
import type { Range } from "../base/time_scale.ts";
import type { DataSource } from "../data/data_source.ts";
import { highlightFor, outlineOf } from "../data/embedded/selection.ts";
import { shownNote } from "../data/lod_note.ts";
import type { EventRef, Events, Highlight, Hit, SeekResult } from "../data/model.ts";
import {
  hitOf,
  type Related,
  rangeOf,
  refOf,
  type SelectionQuery,
  sameRef,
} from "../data/queries.ts";
import { heading, panel } from "./event_details.ts";

const HINT =
  "Click an event for its details and what it launched. Drag on the ruler to mark a span, / to search, ? for all keys.";

/** So long a window stands before flows are asked for in it. */
const PAUSE_MS = 300;

/** What the selection needs of the timeline. */
export interface Stage {
  draw(): void;
  /** Glides to a stretch of time. */
  show(stretch: Range): void;
  /** Brings an event into sight, in time and among the lanes. */
  reveal(ref: EventRef): void;
  /** What is lit has changed: asks for the window again where Python lights it. */
  relight(): void;
  flows(pairs: Related["flows"]): void;
  /** The stretch of time that is looked at. */
  view(): Range;
}

export class Chosen {
  readonly panel = h("div", { class: "ep-panel", "aria-live": "polite" });
  #query: SelectionQuery | null = null;
  #at: EventRef | null = null;
  /** What it has to do with others, when that is known. */
  #related: Related | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #extent: Range | null = null;
  #span: Range | null = null;
  #lit: Highlight | null = null;
  /** What many events are called, and where in them one stands. */
  #many: { label: string; step: SeekResult; exact: string | undefined } | null = null;
  #events: Events;
  readonly #note = h("p", { class: "ep-note" });

  constructor(
    private readonly first: Events,
    private readonly source: DataSource,
    private readonly stage: Stage,
  ) {
    this.#events = first;
    this.#hint();
  }

  get lit(): Highlight | null {
    return this.#lit;
  }

  /** The event whose details are shown. */
  get at(): EventRef | null {
    return this.#at;
  }

  get query(): SelectionQuery | null {
    return this.#query;
  }

  /** Where all that is chosen lies. */
  get extent(): Range | null {
    return this.#at ? rangeOf(this.#at) : this.#extent;
  }

  /** Other events are drawn: what is chosen stays. */
  use(events: Events): void {
    this.#events = events;
    this.#relight();
    if (!this.#query) this.#hint();
    clearTimeout(this.#timer);
    const at = this.#at;
    const more = this.#related && this.#related.flows.length < this.#related.launched;
    if (at && more && this.source.live)
      this.#timer = setTimeout(() => void this.#reflow(at), PAUSE_MS);
  }

  /** Chooses what was clicked; null clears. */
  select(hit: Hit | null): void {
    if (hit) this.#choose(refOf(hit));
    else this.clear();
  }

  /** Chooses an event wherever it is, and brings it into sight. */
  choose(ref: EventRef): void {
    this.#choose(ref);
    this.stage.reveal(ref);
  }

  clear(): void {
    this.#want(null);
    this.#at = null;
    this.#many = null;
    this.#extent = null;
    this.stage.flows([]);
    this.#relight();
    this.#hint();
  }

  /**
   * Lights all that `wanted` means under the name `label`, and goes to where it is; `exact` says
   * how many they are where that is known better than from what is drawn.
   */
  async want(
    query: SelectionQuery,
    label: string,
    go = true,
    exact?: string,
  ): Promise<SeekResult | null> {
    this.#want(query);
    this.#at = null;
    this.#many = null;
    this.stage.flows([]);
    this.#relight();
    let step: SeekResult;
    try {
      step = await this.source.seek(query, {});
    } catch (error) {
      this.panel.replaceChildren(h("p", { class: "ep-warn" }, words(error)));
      return null;
    }
    if (this.#query !== query) return null;
    this.#many = { label, step, exact };
    this.#extent = step.start === null ? null : { start: step.start, end: step.end ?? step.start };
    if (go && this.#extent) this.stage.show(this.#extent);
    this.#tellMany();
    return step;
  }

  /** Steps through what `want` lit: the next event, or the one before. */
  async walk(by: 1 | -1, from?: number): Promise<SeekResult | null> {
    const [query, many] = [this.#query, this.#many];
    if (!query || !many) return null;
    const now = many.step.number;
    const where =
      now !== null
        ? { number: now + by }
        : from !== undefined
          ? { at: from }
          : { number: by > 0 ? 0 : -1 };
    const step = await this.source.seek(query, where);
    if (this.#query !== query || !step.event) return null;
    this.#many = { ...many, step };
    this.#at = step.event;
    this.#relight();
    this.stage.reveal(step.event);
    void this.#describe(step.event);
    return step;
  }

  /** The next of what is lit, or the one before; of one event, what it launched, or its launch. */
  go(by: 1 | -1): void {
    if (this.#many) void this.walk(by);
    else this.#follow(by);
  }

  #follow(by: 1 | -1): void {
    const [at, related] = [this.#at, this.#related];
    if (!at || !related) return;
    const other = (ref: EventRef): boolean => !sameRef(ref, at);
    const { chain, call, flows } = related;
    const to =
      by < 0 ? (call ?? chain.filter(other).at(-1)) : flows.map(([, ref]) => ref).find(other);
    if (to) this.choose(to);
  }

  /** Tells of a span that was marked, for Python. */
  mark(span: Range | null): void {
    this.#span = span;
    this.source.setSelection(this.#query, span);
  }

  #choose(ref: EventRef): void {
    this.#want({ what: "event", prefix: ref.prefix, row: ref.row });
    this.#many = null;
    this.#at = ref;
    this.#relight();
    void this.#describe(ref);
  }

  #want(query: SelectionQuery | null): void {
    this.#query = query;
    this.source.setSelection(query, this.#span);
    this.stage.relight();
  }

  #relight(): void {
    const query = this.#query;
    this.#lit = query && {
      ...highlightFor(this.#events, query),
      outlined: outlineOf(this.#events, this.#at),
    };
    this.stage.draw();
  }

  async #describe(at: EventRef): Promise<void> {
    const many = this.#manyBar();
    this.#related = null;
    this.panel.replaceChildren(...many, heading(at));
    try {
      const [fields, related] = await Promise.all([
        this.source.describe(at),
        this.source.related(at, this.stage.view()),
      ]);
      if (!sameRef(this.#at, at)) return;
      // A rectangle may stand for several events: what is chosen is the longest of them.
      const [start, end] = [Number(fields.start_ns), Number(fields.end_ns)];
      if (end >= start) this.#at = { ...at, start, dur: end - start };
      const actions = {
        choose: (ref: EventRef) => this.choose(ref),
        show: (ref: EventRef) => this.stage.show(rangeOf(ref)),
      };
      const hit = hitOf(this.#events, at);
      this.panel.replaceChildren(...many, ...panel(at, hit, fields, related, actions));
      this.#flow(related);
    } catch (error) {
      if (sameRef(this.#at, at)) this.panel.append(h("p", { class: "ep-warn" }, words(error)));
    }
  }

  /** Asks for the flows near the window that is looked at now. */
  async #reflow(at: EventRef): Promise<void> {
    if (!sameRef(this.#at, at)) return;
    try {
      const related = await this.source.related(at, this.stage.view());
      if (sameRef(this.#at, at)) this.#flow(related);
    } catch {
      // Those that are drawn stay.
    }
  }

  #flow(related: Related): void {
    this.#related = related;
    this.stage.flows(related.flows);
  }

  #tellMany(): void {
    this.panel.replaceChildren(...this.#manyBar());
  }

  #manyBar(): HTMLElement[] {
    if (!this.#many) return [];
    const { label, step, exact } = this.#many;
    const button = (sign: string, title: string, by: 1 | -1): HTMLElement => {
      const one = h("button", { type: "button", "aria-label": title, title }, sign);
      one.disabled = step.count === 0;
      one.addEventListener("click", () => void this.walk(by));
      return one;
    };
    const bar = h(
      "div",
      { class: "ep-steps ep-many" },
      h(
        "span",
        { class: "ep-step" },
        button("‹", "Previous of these", -1),
        ...(step.about && exact
          ? [exact]
          : [h("strong", {}, position(step.number, step.count, step.about)), ` ${label}`]),
        button("›", "Next of these", 1),
      ),
    );
    return [bar];
  }

  #hint(): void {
    const whole = this.#events === this.first ? "" : "Drawn is every event of this window.";
    const note = shownNote(this.#events, this.source.live) || whole;
    // Said once, to screen readers as well, however many windows it is true of.
    if (this.#note.parentElement === this.panel && this.#note.textContent === note) return;
    this.#note.textContent = note;
    this.panel.replaceChildren(h("p", { class: "ep-faint" }, HINT));
    if (note) this.panel.append(this.#note);
  }
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
