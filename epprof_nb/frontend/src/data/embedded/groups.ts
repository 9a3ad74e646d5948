// Numbers of events by the columns that selections use, for pages that merge events.

import { Events } from "../events.ts";
import { memberCount, type SelectionQuery } from "../selection_queries.ts";
import type { ColumnBundle } from "../wire_format.ts";
import type { EventsHeader, ProfileHeader, SeekResult } from "../wire_types.ts";
import { matchingEvents } from "./selected_events.ts";

export class Groups {
  /** One event per group, which stands for all of its events. */
  readonly #events: Events;
  readonly #counted: readonly string[];

  constructor(page: ColumnBundle<ProfileHeader>, header: NonNullable<ProfileHeader["groups"]>) {
    const empty = { op: [], api: [], act: [] };
    this.#events = new Events({
      header: { ...header, slices: empty, shown: {} } satisfies EventsHeader,
      names: () => page.names(),
      column: (name) => page.column(`group.${name}`),
    });
    this.#counted = header.counted;
  }

  /**
   * Count the events of a query, and find their time range; undefined if a table with such events has
   * too many groups.
   */
  find(query: SelectionQuery): Pick<SeekResult, "count" | "start" | "end"> | undefined {
    if (query.what !== "where" && query.what !== "search") return undefined;
    const sets = query.what === "where" ? [this.#events[query.prefix]] : this.#events.sets();
    if (!sets.every(({ prefix }) => this.#counted.includes(prefix))) return undefined;
    const rows = matchingEvents(this.#events, query);
    const found = { count: 0, start: Number.POSITIVE_INFINITY, end: Number.NEGATIVE_INFINITY };
    for (const set of sets) {
      for (const group of rows[set.prefix] ?? []) {
        found.count += memberCount(set, group);
        found.start = Math.min(found.start, set.start[group]);
        found.end = Math.max(found.end, set.start[group] + set.dur[group]);
      }
    }
    return found.count ? found : { count: 0, start: null, end: null };
  }
}
