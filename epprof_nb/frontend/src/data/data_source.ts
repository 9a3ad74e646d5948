// Where the viewer's data comes from: what a static page embeds, or Python behind a live widget.
// Whatever can be asked for has a method here, a local answer below and a remote one in live.ts.

import type { Range } from "../base/time_scale.ts";
import type { TreeData } from "../breakdown/tree.ts";
import { Walk } from "./embedded/event_order.ts";
import { breakdown } from "./embedded/range.ts";
import { related } from "./embedded/related.ts";
import {
  type Cell,
  type EventSet,
  Events,
  type Overview,
  type SourceCell,
  type TableData,
} from "./model.ts";
import {
  hitOf,
  type Ref,
  type Related,
  type SpanTold,
  type Step,
  type Wanted,
  type Where,
} from "./queries.ts";
import type { Bundle } from "./wire_format.ts";

/** A window to draw: its time, its width in pixels, and the lanes in view as [first, end). */
export interface WindowAsk {
  view: Range;
  width: number;
  lanes: [first: number, end: number] | null;
}

/** An event's fields as the DataFrame has them: column to number or text, missing ones left out. */
export type Fields = Record<string, Cell | bigint>;

/** What of a breakdown is wanted: Python sorts and filters all of its rows. */
export interface TableAsk {
  sort: string;
  descending: boolean;
  pattern: string;
}

/** What of the overview is known only when every event was looked at. */
export type Headline = Pick<Overview, "summary" | "findings" | "gaps">;

export interface Supply {
  /** Whether Python answers: what was not sent at first can still be had. */
  readonly live: boolean;
  /** The events of a window; null where none better than those embedded are to be had. */
  window(ask: WindowAsk): Promise<Events | null>;
  /** The line of numbers on top, and what it counts. */
  headline(): Promise<Headline>;
  /** The columns of the overview's counters; where Python answers, also of a window alone. */
  counters(window?: Range): Promise<Bundle<object>>;
  describe(at: Ref): Promise<Fields>;
  /** What an event has to do with others; of very many flows, those in `window`. */
  related(at: Ref, window: Range): Promise<Related>;
  /** How many events a selection has, and one of them. */
  step(wanted: Wanted, where: Where): Promise<Step>;
  span(span: Range): Promise<SpanTold>;
  /** A breakdown; where Python answers and `asked` is given, sorted and filtered by it. */
  table(by: string, asked?: TableAsk): Promise<TableData>;
  tree(): Promise<TreeData>;
  source(): Promise<SourceCell[]>;
  /** Tells what is selected, for `widget.selection`; windows asked for from now on light it. */
  selected(wanted: Wanted | null, span: Range | null): void;
  /** Calls back when Python selects. */
  onSelect(chosen: (wanted: Wanted | null) => void): void;
}

/** Answers from what the page embeds. */
export class Embedded implements Supply {
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

  async source(): Promise<SourceCell[]> {
    return this.bundle.header.source;
  }

  selected(): void {}

  onSelect(): void {}
}

/** What of an event was sent with it. */
export function fieldsOf(set: EventSet, event: number): Fields {
  const fields: Fields = {};
  for (const column of set.columns()) {
    const value = set.named(column) ? set.name(column, event) : set.number(column, event);
    if (value !== undefined && value !== "") fields[column] = value;
  }
  return fields;
}
