// Where the viewer's data comes from: what a static page embeds, or Python behind a live widget.
// Whatever can be asked for has a method here, a local answer below and a remote one in live.ts.

import type { Bundle } from "./decode.ts";
import type { Hit } from "./hit.ts";
import type { Cell, EventSet, Events, Overview, SourceCell, TableData } from "./model.ts";
import type { Range } from "./scale.ts";

/** A window to draw: its time, its width in pixels, and the lanes in view as [first, end). */
export interface WindowAsk {
  view: Range;
  width: number;
  lanes?: [first: number, end: number];
}

/** An event's fields as the DataFrame has them: column to number or text, missing ones left out. */
export type Fields = Record<string, Cell | bigint>;

/** What of a breakdown is wanted: Python sorts and filters all of its rows. */
export interface TableAsk {
  sort: string;
  descending: boolean;
  pattern: string;
}

export interface Supply {
  /** Whether Python answers: what was not sent at first can still be had. */
  readonly live: boolean;
  /** The events of a window; null where none better than those embedded are to be had. */
  window(ask: WindowAsk): Promise<Events | null>;
  describe(at: Hit): Promise<Fields>;
  /** A breakdown; where Python answers and `asked` is given, sorted and filtered by it. */
  table(by: string, asked?: TableAsk): Promise<TableData>;
  source(): Promise<SourceCell[]>;
  /** Tells what is selected, for `widget.selection`. */
  selected(at: Hit | null): void;
}

/** Answers from what the page embeds. */
export class Embedded implements Supply {
  readonly live = false;

  constructor(private readonly bundle: Bundle<Overview>) {}

  async window(): Promise<null> {
    return null;
  }

  async describe(at: Hit): Promise<Fields> {
    return fieldsOf(at.set, at.event);
  }

  async table(by: string): Promise<TableData> {
    const { tables } = this.bundle.header;
    return tables[by] ?? { columns: [], rows: 0 };
  }

  async source(): Promise<SourceCell[]> {
    return this.bundle.header.source;
  }

  selected(): void {}
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
