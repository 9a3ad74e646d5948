// Has the events of the window ready: those that were sent before where they serve, else Python is
// asked. One question is on its way and one waits, the latest; so Python never lags behind.

import { clamp, type Range } from "../base/time_scale.ts";
import type { DataSource } from "./data_source.ts";
import type { Events } from "./model.ts";

/** So much of a window more is asked for on both sides: a small move needs no answer. */
const MARGIN = 0.25;
/** A move that leaves less than this share of a window beside it asks before the rest is gone. */
const SPARE = 0.08;
/** Rectangles up to so much wider than a pixel still serve. */
const BLUR = 1.5;
const KEPT = 12;
const RETRY_MS = 2000;
/** How long nothing moves until something is fetched ahead; and between two such. */
const IDLE_MS = 200;
const SILENT = "no answer from Python: showing what is here";

export interface Want {
  view: Range;
  width: number;
  /** Lanes in view, first and last + 1; null for all. */
  lanes: [first: number, end: number] | null;
}

/** What was sent: `view` is all of it, the margins too. */
interface Loaded extends Want {
  events: Events;
}

export class Loader {
  /** The last windows, the latest used first. */
  #kept: Loaded[] = [];
  #first: Loaded | null = null;
  #wanted: Want | null = null;
  #asked: Want | null = null;
  /** What is looked at now. */
  #now: Want | null = null;
  #round = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #idle: ReturnType<typeof setTimeout> | undefined;
  /** Nothing was answered for so long that the reader was told. */
  #silent = false;
  #ended = false;

  constructor(
    private readonly source: DataSource,
    private readonly whole: Range,
    private readonly loaded: (events: Events, sent: Range) => void,
    private readonly say: (text: string) => void,
  ) {}

  /** Notes events that are there already. */
  add(want: Want, events: Events): void {
    this.#first = { ...want, events };
    this.#keep(this.#first, 0);
  }

  want(want: Want): void {
    clearTimeout(this.#idle);
    this.#now = want;
    const found = this.#kept.find((one) => serves(one, want, this.whole));
    if (found) {
      this.#wanted = null;
      if (found !== this.#kept[0]) {
        this.#kept = [found, ...this.#kept.filter((one) => one !== found)];
        this.loaded(found.events, found.view);
      }
      if (ends(found, want, this.whole) && !this.#asked) void this.#ask(want, true);
      else this.#ahead();
      return;
    }
    this.#wanted = want;
    // After a silence every look elsewhere tries anew, though not faster than silence is noticed.
    if (!this.#asked || this.#silent) void this.#ask(want, true, this.#silent);
  }

  /** What was sent no longer serves: other events are lit now. */
  forget(): void {
    this.#kept = [];
    this.#first = null;
    this.#round++;
    this.#asked = null;
  }

  destroy(): void {
    this.#ended = true;
    this.forget();
    clearTimeout(this.#retry);
    clearTimeout(this.#idle);
  }

  async #ask(want: Want, show: boolean, again = false): Promise<void> {
    const round = this.#round;
    this.#asked = want;
    this.#silent = false;
    clearTimeout(this.#retry);
    // A message may have been lost: once more, then no more until the silence ends.
    this.#retry = setTimeout(() => {
      if (again) {
        this.#silent = true;
        this.say(SILENT);
      } else void this.#ask(this.#wanted ?? want, show, true);
    }, RETRY_MS);
    let events: Events | null = null;
    let trouble = "";
    try {
      events = await this.source.window(wider(want, this.whole));
    } catch (error) {
      trouble = error instanceof Error ? error.message : String(error);
    }
    if (this.#ended || round !== this.#round) return;
    clearTimeout(this.#retry);
    this.say(trouble);
    this.#asked = null;
    if (events) {
      const fresh = { ...wider(want, this.whole), events };
      const useful = show && this.#useful(fresh);
      // What was fetched ahead waits behind what is drawn.
      this.#keep(fresh, useful ? 0 : 1);
      if (useful) this.loaded(events, fresh.view);
    }
    const next = this.#wanted;
    this.#wanted = null;
    if (next && next !== want) this.want(next);
    else if (events) this.#ahead();
  }

  /** Whether an answer shows what is looked at now, or some of it where nothing here shows all. */
  #useful(fresh: Loaded): boolean {
    const now = this.#now;
    if (!now || serves(fresh, now, this.whole)) return true;
    return near(fresh, now) && !this.#kept.some((one) => serves(one, now, this.whole));
  }

  /** Keeps what was sent; of much the longest unused goes, though never the first picture. */
  #keep(one: Loaded, at: number): void {
    this.#kept.splice(at, 0, one);
    if (this.#kept.length <= KEPT) return;
    const last = this.#kept.length - 1;
    this.#kept.splice(this.#kept[last] === this.#first ? last - 1 : last, 1);
  }

  /** Asks for where a next step may lead while nothing else is to be done. */
  #ahead(): void {
    clearTimeout(this.#idle);
    const next =
      this.#now &&
      steps(this.#now, this.whole).find(
        (step) => !this.#kept.some((one) => serves(one, step, this.whole)),
      );
    if (!next) return;
    this.#idle = setTimeout(() => {
      if (!this.#asked) void this.#ask(next, false);
    }, IDLE_MS);
  }
}

/** The window with its margins. */
function wider(want: Want, whole: Range): Want {
  const length = want.view.end - want.view.start;
  const start = Math.max(want.view.start - length * MARGIN, Math.min(whole.start, want.view.start));
  const end = Math.min(want.view.end + length * MARGIN, Math.max(whole.end, want.view.end));
  return { ...want, view: { start, end }, width: (want.width * (end - start)) / length };
}

/** Where the next steps may lead, the likeliest first: nearer, on either way along, further off. */
function steps(want: Want, whole: Range): Want[] {
  const { start, end } = want.view;
  const half = (end - start) / 2;
  const views = [
    { start: start + half / 2, end: end - half / 2 },
    { start: start + half, end: end + half },
    { start: start - half, end: end - half },
    { start: start - half, end: end + half },
  ];
  return views.map((view) => ({ ...want, view: clamp(view, whole) }));
}

/** Whether what was sent for one window serves for another. */
export function serves(one: Loaded, want: Want, whole: Range): boolean {
  const from = Math.max(want.view.start, whole.start);
  const to = Math.min(want.view.end, whole.end);
  if (one.view.start > from || one.view.end < to) return false;
  if (one.lanes && (!want.lanes || want.lanes[0] < one.lanes[0] || want.lanes[1] > one.lanes[1])) {
    return false;
  }
  if (!one.events.thinned) return true;
  const has = (one.view.end - one.view.start) / one.width;
  const needs = (want.view.end - want.view.start) / want.width;
  return has <= needs * BLUR;
}

/** Whether what was sent reaches hardly further than the window, on a side where there is more. */
function ends(one: Loaded, want: Want, whole: Range): boolean {
  const spare = (want.view.end - want.view.start) * SPARE;
  return (
    (one.view.start > want.view.start - spare && one.view.start > whole.start) ||
    (one.view.end < want.view.end + spare && one.view.end < whole.end)
  );
}

function near(one: Want, now: Want): boolean {
  return one.view.start < now.view.end && one.view.end > now.view.start;
}
