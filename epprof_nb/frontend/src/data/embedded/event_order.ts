// Selected events one after another in the order of time, among what the page embeds.

import type { Events, Ref, Step } from "../model.ts";
import { membersOf, refOf, type Wanted, type Where } from "../queries.ts";
import { found } from "./selection.ts";

/** The events of one selection, found once. */
export class Walk {
  readonly #order: Ref[] = [];
  readonly #count: number;
  readonly #about: boolean;

  constructor(events: Events, wanted: Wanted) {
    const rows = found(events, wanted);
    let count = 0;
    let about = false;
    for (const set of events.sets()) {
      for (const event of rows[set.prefix] ?? []) {
        this.#order.push(refOf({ set, event }));
        const members = membersOf(set, event);
        count += members;
        about ||= members > 1;
      }
    }
    this.#order.sort((a, b) => a.start - b.start);
    this.#count = count;
    this.#about = about;
  }

  step(where: Where): Step {
    const events = this.#order;
    const told: Step = { count: this.#count, start: null, end: null, number: null, event: null };
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
