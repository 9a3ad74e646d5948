// Events of a query in time order, among those embedded in the page. If these stand for several, the
// number of events comes from groups.

import type { EventSet, Events } from "../events.ts";
import { memberCount, refOf, type SeekTarget, type SelectionQuery } from "../selection_queries.ts";
import type { SeekResult } from "../wire_types.ts";
import type { Groups } from "./groups.ts";
import { matchingEvents } from "./selected_events.ts";

/** Events of one query, searched once. */
export class EventOrder {
  readonly #sets: EventSet[];
  /** Table of each event by number, the event's index there, and its start. */
  readonly #table: Uint8Array;
  readonly #event: Uint32Array;
  readonly #start: Float64Array;
  /** Indices of the above by start. */
  readonly #order: Uint32Array;
  readonly #found: Pick<SeekResult, "count" | "start" | "end" | "about" | "drawn">;

  constructor(events: Events, query: SelectionQuery, groups: Groups | null) {
    const rows = matchingEvents(events, query);
    this.#sets = events.sets();
    const total = this.#sets.reduce((sum, { prefix }) => sum + (rows[prefix]?.length ?? 0), 0);
    this.#table = new Uint8Array(total);
    this.#event = new Uint32Array(total);
    this.#start = new Float64Array(total);
    let at = 0;
    let count = 0;
    let about = false;
    let end = Number.NEGATIVE_INFINITY;
    this.#sets.forEach((set, table) => {
      for (const event of rows[set.prefix] ?? []) {
        this.#table[at] = table;
        this.#event[at] = event;
        this.#start[at] = set.start[event];
        end = Math.max(end, set.start[event] + set.dur[event]);
        const members = memberCount(set, event);
        count += members;
        about ||= members > 1;
        at++;
      }
    });
    const start = this.#start;
    this.#order = Uint32Array.from(start, (_, i) => i).sort((a, b) => start[a] - start[b] || a - b);
    const exact = groups?.find(query);
    this.#found = exact ?? {
      count,
      start: total ? start[this.#order[0]] : null,
      end: total ? end : null,
    };
    if (about && !exact) this.#found.about = true;
    else if (total < this.#found.count) this.#found.drawn = total;
  }

  seek(target: SeekTarget): SeekResult {
    const result: SeekResult = { ...this.#found, number: null, event: null };
    const { length } = this.#order;
    if (length === 0) return result;
    if ("at" in target) {
      const first = this.#order.findIndex((i) => this.#start[i] >= target.at);
      result.number = Math.max(first, 0);
    } else if ("number" in target) {
      result.number = ((target.number % length) + length) % length;
    }
    if (result.number !== null) {
      const i = this.#order[result.number];
      result.event = refOf({ set: this.#sets[this.#table[i]], event: this.#event[i] });
    }
    return result;
  }
}
