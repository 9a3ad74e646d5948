// Data source of a live view: it sends requests to Python.

import type { Range } from "../base/time_scale.ts";
import type { RangeBreakdown } from "./by_range.ts";
import type { Channel } from "./channel.ts";
import type { DataSource, LateHeader, TableRequest, WindowRequest } from "./data_source.ts";
import { Events, type Fields } from "./events.ts";
import type { Holders } from "./memory_holders.ts";
import type { Related, SeekTarget, SelectionQuery } from "./selection_queries.ts";
import { Bundle } from "./wire_format.ts";
import type {
  EventRef,
  EventsHeader,
  SeekResult,
  SourceCell,
  TableData,
  TreeData,
} from "./wire_types.ts";

export class LiveSource implements DataSource {
  readonly live = true;
  readonly zooms = true;

  #query: SelectionQuery | null = null;

  constructor(private readonly channel: Channel) {}

  async window({ view, width, lanes }: WindowRequest): Promise<Events | null> {
    const selection = this.#query;
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
    events.highlightKey = selection ? JSON.stringify(selection) : "";
    return events;
  }

  async headline(): Promise<LateHeader> {
    return (await this.channel.request({ type: "headline" })).content.header as LateHeader;
  }

  async counters(window?: Range): Promise<Bundle<object>> {
    const { bytes } = await this.channel.request({ type: "counters", ...window });
    return new Bundle<object>(bytes ?? new Uint8Array());
  }

  async describe({ prefix, row }: EventRef): Promise<Fields> {
    const { content } = await this.channel.request({ type: "describe", prefix, row });
    return content.fields as Fields;
  }

  async related({ prefix, row }: EventRef, { start, end }: Range): Promise<Related> {
    const window = [start, end];
    const { content } = await this.channel.request({ type: "related", prefix, row, window });
    return content.related as Related;
  }

  async seek(selection: SelectionQuery, where: SeekTarget): Promise<SeekResult> {
    const { content } = await this.channel.request({ type: "seek", selection, ...where });
    return content as unknown as SeekResult;
  }

  async byRange({ start, end }: Range): Promise<RangeBreakdown> {
    const { content } = await this.channel.request({
      type: "by_range",
      start: Math.round(start),
      end: Math.round(end),
    });
    return content.by_range as RangeBreakdown;
  }

  async memoryAt(time: number): Promise<Holders> {
    const { content } = await this.channel.request({ type: "memory_at", at: Math.round(time) });
    return content.holders as Holders;
  }

  async table(by: string, request?: TableRequest): Promise<TableData> {
    return (await this.channel.request({ type: "table", by, ...request })).content
      .table as TableData;
  }

  async tree(by: string): Promise<TreeData> {
    return (await this.channel.request({ type: "tree", by })).content.tree as TreeData;
  }

  async sourceCode(): Promise<SourceCell[]> {
    return (await this.channel.request({ type: "source" })).content.source as SourceCell[];
  }

  async trace(): Promise<Uint8Array<ArrayBuffer> | null> {
    return (await this.channel.request({ type: "trace" })).bytes;
  }

  setSelection(query: SelectionQuery | null, range: Range | null): void {
    this.#query = query;
    this.channel.send({
      type: "selected",
      selection: query,
      time_range: range && [Math.round(range.start), Math.round(range.end)],
    });
  }

  onSelect(listener: (query: SelectionQuery | null) => void): void {
    this.channel.on("select", (content) => listener((content.selection as SelectionQuery) ?? null));
  }
}
