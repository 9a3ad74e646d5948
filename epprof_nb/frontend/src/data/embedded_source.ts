// Data source of a static page, which answers from the embedded data.

import type { Range } from "../base/time_scale.ts";
import type { RangeBreakdown } from "./by_range.ts";
import type { DataSource, LateHeader, WindowRequest } from "./data_source.ts";
import { byRange } from "./embedded/by_range.ts";
import { Detail } from "./embedded/embedded_events.ts";
import { EventOrder } from "./embedded/event_order.ts";
import { Groups } from "./embedded/groups.ts";
import { related } from "./embedded/related.ts";
import { Events, type Fields } from "./events.ts";
import { type Holders, holdersAt } from "./memory_holders.ts";
import {
  fieldsOf,
  hitOf,
  type Related,
  type SeekTarget,
  type SelectionQuery,
} from "./selection_queries.ts";
import type { Bundle } from "./wire_format.ts";
import type {
  EventRef,
  ProfileHeader,
  SeekResult,
  SourceCell,
  TableData,
  TreeData,
} from "./wire_types.ts";

/** Answers from the embedded data. */
export class EmbeddedSource implements DataSource {
  readonly live = false;
  readonly zooms: boolean;

  readonly #events: Events;
  readonly #groups: Groups | null;
  readonly #detail: Detail | null;
  #order: { key: string; order: EventOrder } | null = null;

  constructor(private readonly bundle: Bundle<ProfileHeader>) {
    this.#events = new Events(bundle);
    const { groups, detail } = bundle.header;
    this.#detail = detail ? new Detail() : null;
    this.zooms = this.#detail !== null;
    this.#groups = groups ? new Groups(bundle, groups) : null;
  }

  async window({ view, width }: WindowRequest): Promise<Events | null> {
    return this.#detail ? this.#detail.window(view, width) : null;
  }

  async headline(): Promise<LateHeader> {
    return this.bundle.header;
  }

  async counters(window?: Range): Promise<Bundle<object>> {
    return window && this.#detail ? this.#detail.counters() : this.bundle;
  }

  async describe(at: EventRef): Promise<Fields> {
    if (this.#detail) {
      const [events, event] = await this.#detail.blockOf(at);
      return fieldsOf(events[at.prefix], event);
    }
    const hit = hitOf(this.#events, at);
    return hit ? fieldsOf(hit.set, hit.event) : {};
  }

  async related(at: EventRef): Promise<Related> {
    const events = await this.#all();
    const hit = hitOf(events, at);
    if (!hit) throw new Error("This page does not contain the event.");
    return related(events, this.bundle.header, hit, this.#detail ? null : this.#groups);
  }

  async seek(query: SelectionQuery, where: SeekTarget): Promise<SeekResult> {
    if (this.#detail && Object.keys(where).length === 0) {
      // Without an event to go to, no event needs to be inflated.
      const found = this.#groups?.find(query);
      if (found) return { ...found, number: null, event: null };
    }
    const key = JSON.stringify(query);
    if (this.#order?.key !== key) {
      const groups = this.#detail ? null : this.#groups;
      this.#order = { key, order: new EventOrder(await this.#all(), query, groups) };
    }
    return this.#order.order.seek(where);
  }

  async byRange(range: Range): Promise<RangeBreakdown> {
    return byRange(this.#events, this.bundle, range, this.#detail);
  }

  async memoryAt(time: number): Promise<Holders | null> {
    const exact = this.bundle.header.holders?.exact ?? true;
    return holdersAt(exact || !this.#detail ? this.bundle : await this.#detail.holders(), time);
  }

  /** Every event, or the merged events if the page has only these. */
  async #all(): Promise<Events> {
    return this.#detail ? this.#detail.all() : this.#events;
  }

  async table(by: string): Promise<TableData> {
    const { tables } = this.bundle.header;
    return tables[by] ?? { columns: [], rows: 0 };
  }

  async tree(by: string): Promise<TreeData> {
    return this.bundle.header.trees[by];
  }

  async sourceCode(): Promise<SourceCell[]> {
    return this.bundle.header.source;
  }

  async trace(): Promise<null> {
    return null;
  }

  setSelection(): void {}

  onSelect(): void {}
}
