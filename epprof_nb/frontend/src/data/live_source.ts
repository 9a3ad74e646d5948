// Answers from Python, for what data_source.ts can be asked.

import type { Range } from "../base/time_scale.ts";
import type { Channel } from "./channel.ts";
import type { DataSource, Headline, TableRequest, WindowRequest } from "./data_source.ts";
import {
  Events,
  type EventsHeader,
  type Fields,
  type Ref,
  type SourceCell,
  type Step,
  type TableData,
  type TreeData,
} from "./model.ts";
import type { Related, SpanTold, Wanted, Where } from "./queries.ts";
import { Bundle } from "./wire_format.ts";

export class LiveSource implements DataSource {
  readonly live = true;

  #wanted: Wanted | null = null;

  constructor(private readonly channel: Channel) {}

  async window({ view, width, lanes }: WindowRequest): Promise<Events | null> {
    const selection = this.#wanted;
    const { bytes } = await this.channel.request({
      type: "window",
      selection,
      start: view.start,
      end: view.end,
      width,
      lanes,
    });
    if (!bytes) return null;
    const events = new Events(new Bundle<EventsHeader>(bytes));
    events.litBy = selection ? JSON.stringify(selection) : "";
    return events;
  }

  async headline(): Promise<Headline> {
    return (await this.channel.request({ type: "headline" })).content.headline as Headline;
  }

  async counters(window?: Range): Promise<Bundle<object>> {
    const { bytes } = await this.channel.request({ type: "counters", ...window });
    return new Bundle<object>(bytes ?? new Uint8Array());
  }

  async describe({ prefix, row }: Ref): Promise<Fields> {
    const { content } = await this.channel.request({ type: "describe", prefix, row });
    return content.fields as Fields;
  }

  async related({ prefix, row }: Ref, { start, end }: Range): Promise<Related> {
    const window = [start, end];
    const { content } = await this.channel.request({ type: "related", prefix, row, window });
    return content.related as Related;
  }

  async step(selection: Wanted, where: Where): Promise<Step> {
    const { content } = await this.channel.request({ type: "step", selection, ...where });
    return content as unknown as Step;
  }

  async span({ start, end }: Range): Promise<SpanTold> {
    const { content } = await this.channel.request({
      type: "span",
      start: Math.round(start),
      end: Math.round(end),
    });
    return content.span as SpanTold;
  }

  async table(by: string, asked?: TableRequest): Promise<TableData> {
    return (await this.channel.request({ type: "table", by, ...asked })).content.table as TableData;
  }

  async tree(): Promise<TreeData> {
    return (await this.channel.request({ type: "tree" })).content.tree as TreeData;
  }

  async sourceCode(): Promise<SourceCell[]> {
    return (await this.channel.request({ type: "source" })).content.source as SourceCell[];
  }

  selected(wanted: Wanted | null, span: Range | null): void {
    this.#wanted = wanted;
    this.channel.send({
      type: "selected",
      selection: wanted,
      span: span && [Math.round(span.start), Math.round(span.end)],
    });
  }

  onSelect(chosen: (wanted: Wanted | null) => void): void {
    this.channel.on("select", (content) => chosen((content.selection as Wanted) ?? null));
  }
}
