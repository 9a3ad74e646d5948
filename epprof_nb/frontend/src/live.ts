// Answers from Python, for what supply.ts can be asked.

import { Bundle } from "./decode.ts";
import type { Hit } from "./hit.ts";
import { Events, type EventsHeader, type SourceCell, type TableData } from "./model.ts";
import { type Fields, fieldsOf, type Supply, type TableAsk, type WindowAsk } from "./supply.ts";
import type { Talk } from "./talk.ts";

export class Live implements Supply {
  readonly live = true;

  constructor(private readonly talk: Talk) {}

  async window({ view, width, lanes }: WindowAsk): Promise<Events | null> {
    const { bytes } = await this.talk.ask({
      type: "window",
      start: view.start,
      end: view.end,
      width,
      lanes: lanes ?? null,
    });
    return bytes && new Events(new Bundle<EventsHeader>(bytes));
  }

  async describe({ set, event }: Hit): Promise<Fields> {
    const row = set.row?.[event];
    if (row === undefined) return fieldsOf(set, event);
    const { content } = await this.talk.ask({ type: "describe", prefix: set.prefix, row });
    return content.fields as Fields;
  }

  async table(by: string, asked?: TableAsk): Promise<TableData> {
    return (await this.talk.ask({ type: "table", by, ...asked })).content.table as TableData;
  }

  async source(): Promise<SourceCell[]> {
    return (await this.talk.ask({ type: "source" })).content.source as SourceCell[];
  }

  selected(at: Hit | null): void {
    this.talk.tell({
      type: "selected",
      table: at?.set.prefix ?? null,
      start: at ? at.set.start[at.event] : 0,
      op: at?.set.prefix === "op" ? String(at.set.number("id", at.event)) : null,
      correlation: at ? String(at.set.number("correlation_id", at.event) ?? -1) : null,
    });
  }
}
