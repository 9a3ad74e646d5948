// Selected events one after another in the order of time, among what the page embeds.

import type { EventRef, Events, SeekResult } from "../model.ts";
import { memberCount, refOf, type SeekTarget, type SelectionQuery } from "../queries.ts";
import { matchingEvents } from "./selection.ts";

/** The events of one selection, found once. */
export class EventOrder {
  readonly #events: EventRef[] = [];
  readonly #count: number;
  readonly #about: boolean;

  constructor(events: Events, query: SelectionQuery) {
    const rows = matchingEvents(events, query);
    let count = 0;
    let about = false;
    for (const set of events.sets()) {
      for (const event of rows[set.prefix] ?? []) {
        this.#events.push(refOf({ set, event }));
        const members = memberCount(set, event);
        count += members;
        about ||= members > 1;
      }
    }
    this.#events.sort((a, b) => a.start - b.start);
    this.#count = count;
    this.#about = about;
  }

  seek(where: SeekTarget): SeekResult {
    const events = this.#events;
    const told: SeekResult = {
      count: this.#count,
      start: null,
      end: null,
      number: null,
      event: null,
    };
    if (this.#about) told.about = true;
    if (events.length === 0) return told;
    told.start = events[0].start;
    told.end = events.reduce((end, one) => Math.max(end, one.start + one.dur), told.start);
    if ("at" in where) {
      const first = events.findIndex(({ start }) => start >= where.at);
      told.number = Math.max(first, 0);
    } else if ("number" in where) {
      const { length } = events;
      told.number = ((where.number % length) + length) % length;
    }
    if (told.number !== null) told.event = events[told.number];
    return told;
  }
}
