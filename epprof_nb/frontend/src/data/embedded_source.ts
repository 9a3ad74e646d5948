// Data source of a static page: it answers from what the page embeds.

import type { Range } from "../base/time_scale.ts";
import type { DataSource, Headline } from "./data_source.ts";
import { EventOrder } from "./embedded/event_order.ts";
import { rangeBreakdown } from "./embedded/range.ts";
import { related } from "./embedded/related.ts";
import {
  type EventRef,
  Events,
  type Fields,
  type Overview,
  type SeekResult,
  type SourceCell,
  type TableData,
  type TreeData,
} from "./model.ts";
import {
  fieldsOf,
  hitOf,
  type RangeBreakdown,
  type Related,
  type SeekTarget,
  type SelectionQuery,
} from "./queries.ts";
import type { Bundle } from "./wire_format.ts";

/** Answers from what the page embeds. */
export class EmbeddedSource implements DataSource {
  readonly live = false;

  readonly #events: Events;
  #order: { key: string; order: EventOrder } | null = null;

  constructor(private readonly bundle: Bundle<Overview>) {
    this.#events = new Events(bundle);
  }

  async window(): Promise<null> {
    return null;
  }

  async headline(): Promise<LateOverview> {
    return this.bundle.header;
  }

  async counters(): Promise<Bundle<object>> {
    return this.bundle;
  }

  async describe(at: EventRef): Promise<Fields> {
    const hit = hitOf(this.#events, at);
    return hit ? fieldsOf(hit.set, hit.event) : {};
  }

  async related(at: EventRef): Promise<Related> {
    const hit = hitOf(this.#events, at);
    if (!hit) throw new Error("this event is not in the page");
    return related(this.#events, this.bundle.header, hit);
  }

  async seek(query: SelectionQuery, where: SeekTarget): Promise<SeekResult> {
    const key = JSON.stringify(query);
    if (this.#order?.key !== key) this.#order = { key, order: new EventOrder(this.#events, query) };
    return this.#order.order.seek(where);
  }

  async rangeBreakdown(range: Range): Promise<RangeBreakdown> {
    return rangeBreakdown(this.#events, this.bundle, range);
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

  setSelection(): void {}

  onSelect(): void {}
}
