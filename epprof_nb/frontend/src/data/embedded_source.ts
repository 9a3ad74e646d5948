// Data source of a static page: it answers from what the page embeds.

import type { Range } from "../base/time_scale.ts";
import type { DataSource, Headline } from "./data_source.ts";
import { Walk } from "./embedded/event_order.ts";
import { breakdown } from "./embedded/range.ts";
import { related } from "./embedded/related.ts";
import {
  Events,
  type Fields,
  type Overview,
  type Ref,
  type SourceCell,
  type Step,
  type TableData,
  type TreeData,
} from "./model.ts";
import {
  fieldsOf,
  hitOf,
  type Related,
  type SpanTold,
  type Wanted,
  type Where,
} from "./queries.ts";
import type { Bundle } from "./wire_format.ts";

/** Answers from what the page embeds. */
export class EmbeddedSource implements DataSource {
  readonly live = false;

  readonly #events: Events;
  #walk: { key: string; walk: Walk } | null = null;

  constructor(private readonly bundle: Bundle<Overview>) {
    this.#events = new Events(bundle);
  }

  async window(): Promise<null> {
    return null;
  }

  async headline(): Promise<Headline> {
    return this.bundle.header;
  }

  async counters(): Promise<Bundle<object>> {
    return this.bundle;
  }

  async describe(at: Ref): Promise<Fields> {
    const hit = hitOf(this.#events, at);
    return hit ? fieldsOf(hit.set, hit.event) : {};
  }

  async related(at: Ref): Promise<Related> {
    const hit = hitOf(this.#events, at);
    if (!hit) throw new Error("this event is not in the page");
    return related(this.#events, this.bundle.header, hit);
  }

  async step(wanted: Wanted, where: Where): Promise<Step> {
    const key = JSON.stringify(wanted);
    if (this.#walk?.key !== key) this.#walk = { key, walk: new Walk(this.#events, wanted) };
    return this.#walk.walk.step(where);
  }

  async span(span: Range): Promise<SpanTold> {
    return breakdown(this.#events, this.bundle, span);
  }

  async table(by: string): Promise<TableData> {
    const { tables } = this.bundle.header;
    return tables[by] ?? { columns: [], rows: 0 };
  }

  async tree(): Promise<TreeData> {
    return this.bundle.header.tree;
  }

  async sourceCode(): Promise<SourceCell[]> {
    return this.bundle.header.source;
  }

  selected(): void {}

  onSelect(): void {}
}
