// Events of a query in time order, among those embedded in the page.

import type { EventRef, Events, SeekResult } from "../model.ts";
import { memberCount, refOf, type SeekTarget, type SelectionQuery } from "../queries.ts";
import { matchingEvents } from "./selection.ts";

/** Events of one query, searched once. */
export class EventOrder {
  readonly #events: EventRef[] = [];
  readonly #count: number;
  readonly #about: boolean;

  constructor(events: Events, query: SelectionQuery) {
    const rows = matchingEvents(events, query);
    let count = 0;
    let approximate = false;
    for (const set of events.sets()) {
      for (const event of rows[set.prefix] ?? []) {
        this.#events.push(refOf({ set, event }));
        const members = memberCount(set, event);
        count += members;
        approximate ||= members > 1;
      }
    }
    this.#events.sort((a, b) => a.start - b.start);
    this.#count = count;
    this.#about = approximate;
  }

  seek(target: SeekTarget): SeekResult {
    const events = this.#events;
    const result: SeekResult = {
      count: this.#count,
      start: null,
      end: null,
      number: null,
      event: null,
    };
    if (this.#about) result.about = true;
    if (events.length === 0) return result;
    result.start = events[0].start;
    result.end = events.reduce((end, one) => Math.max(end, one.start + one.dur), result.start);
    if ("at" in target) {
      const first = events.findIndex(({ start }) => start >= target.at);
      result.number = Math.max(first, 0);
    } else if ("number" in target) {
      const { length } = events;
      result.number = ((target.number % length) + length) % length;
    }
    if (result.number !== null) result.event = events[result.number];
    return result;
  }
}
