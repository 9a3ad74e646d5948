// Has the events of the window ready: those that were sent before where they serve, else Python is
// asked. One question is on its way and one waits, the latest; so Python never lags behind.

import type { Events } from "./model.ts";
import type { Range } from "./scale.ts";
import type { Supply } from "./supply.ts";

/** Half a window more comes on both sides, as views/answers.py has it. */
const MARGIN = 0.5;
/** Rectangles up to so much wider than a pixel still serve. */
const BLUR = 1.5;
const KEPT = 12;
const RETRY_MS = 2000;
const IDLE_MS = 250;
const SILENT = "no answer from Python: showing what is here";

export interface Want {
  view: Range;
  width: number;
  /** Lanes in view, first and last + 1; null for all. */
  lanes: [first: number, end: number] | null;
}

interface Loaded extends Want {
  events: Events;
}

export class Loader {
  /** The last windows, the latest used first. */
  #kept: Loaded[] = [];
  #wanted: Want | null = null;
  #asked: Want | null = null;
  #round = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #idle: ReturnType<typeof setTimeout> | undefined;
  /** Nothing was answered for so long that the reader was told. */
  #silent = false;
  #ended = false;

  constructor(
    private readonly supply: Supply,
    private readonly whole: Range,
    private readonly loaded: (events: Events) => void,
    private readonly say: (text: string) => void,
  ) {}

  /** Notes events that are there already. */
  add(want: Want, events: Events): void {
    this.#kept.unshift({ ...want, events });
    this.#kept.length = Math.min(this.#kept.length, KEPT);
  }

  want(want: Want): void {
    clearTimeout(this.#idle);
    const found = this.#kept.find((one) => serves(one, want, this.whole));
    if (found) {
      this.#wanted = null;
      if (found !== this.#kept[0]) {
        this.#kept = [found, ...this.#kept.filter((one) => one !== found)];
        this.loaded(found.events);
      }
      this.#ahead(want);
      return;
    }
    this.#wanted = want;
    // After a silence every look elsewhere tries anew, though not faster than silence is noticed.
    if (!this.#asked || this.#silent) void this.#ask(want, true, this.#silent);
  }

  /** What was sent no longer serves: other events are lit now. */
  forget(): void {
    this.#kept = [];
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
      events = await this.supply.window(want);
    } catch (error) {
      trouble = error instanceof Error ? error.message : String(error);
    }
    if (this.#ended || round !== this.#round) return;
    clearTimeout(this.#retry);
    this.say(trouble);
    this.#asked = null;
    if (events) {
      const fresh = { ...want, events };
      const useful = show && (!this.#wanted || this.#wanted === want || near(want, this.#wanted));
      // What was fetched ahead waits behind what is drawn.
      this.#kept.splice(useful ? 0 : 1, 0, fresh);
      this.#kept.length = Math.min(this.#kept.length, KEPT);
      if (useful) this.loaded(events);
    }
    const next = this.#wanted;
    this.#wanted = null;
    if (next && next !== want) this.want(next);
    else if (show && events) this.#ahead(want);
  }

  /** Asks for the next step into the window while nothing else is to be done. */
  #ahead(want: Want): void {
    const quarter = (want.view.end - want.view.start) / 4;
    const view = { start: want.view.start + quarter, end: want.view.end - quarter };
    const next = { ...want, view };
    clearTimeout(this.#idle);
    if (this.#kept.some((one) => serves(one, next, this.whole))) return;
    this.#idle = setTimeout(() => {
      if (!this.#asked) void this.#ask(next, false);
    }, IDLE_MS);
  }
}

/** Whether what was sent for one window serves for another. */
export function serves(one: Loaded, want: Want, whole: Range): boolean {
  const margin = (one.view.end - one.view.start) * MARGIN;
  const from = Math.max(want.view.start, whole.start);
  const to = Math.min(want.view.end, whole.end);
  if (one.view.start - margin > from || one.view.end + margin < to) return false;
  if (one.lanes && (!want.lanes || want.lanes[0] < one.lanes[0] || want.lanes[1] > one.lanes[1])) {
    return false;
  }
  if (!one.events.thinned) return true;
  const has = (one.view.end - one.view.start) / one.width;
  const needs = (want.view.end - want.view.start) / want.width;
  return has <= needs * BLUR;
}

/** Whether an answer that comes late still shows part of what is wanted now. */
function near(one: Want, now: Want): boolean {
  return one.view.start < now.view.end && one.view.end > now.view.start;
}
