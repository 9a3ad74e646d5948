// Where the viewer's data comes from: what a static page embeds, or Python behind a live widget.
// Whatever can be asked for has a method here, a local answer below and a remote one in live.ts.

import type { Range } from "../base/time_scale.ts";
import type {
  EventRef,
  Events,
  Fields,
  Overview,
  SeekResult,
  SourceCell,
  TableData,
  TreeData,
} from "./model.ts";
import type { RangeBreakdown, Related, SeekTarget, SelectionQuery } from "./queries.ts";
import type { Bundle } from "./wire_format.ts";

/** A window to draw: its time, its width in pixels, and the lanes in view as [first, end). */
export interface WindowRequest {
  view: Range;
  width: number;
  lanes: [first: number, end: number] | null;
}

/** What of a breakdown is wanted: Python sorts and filters all of its rows. */
export interface TableRequest {
  sort: string;
  descending: boolean;
  pattern: string;
}

/** What of the overview is known only when every event was looked at. */
export type Headline = Pick<Overview, "summary" | "findings" | "gaps">;

export interface DataSource {
  /** Whether Python answers: what was not sent at first can still be had. */
  readonly live: boolean;
  /** The events of a window; null where none better than those embedded are to be had. */
  window(ask: WindowRequest): Promise<Events | null>;
  /** The line of numbers on top, and what it counts. */
  headline(): Promise<Headline>;
  /** The columns of the overview's counters; where Python answers, also of a window alone. */
  counters(window?: Range): Promise<Bundle<object>>;
  describe(at: EventRef): Promise<Fields>;
  /** What an event has to do with others; of very many flows, those in `window`. */
  related(at: EventRef, window: Range): Promise<Related>;
  /** How many events a selection has, and one of them. */
  seek(query: SelectionQuery, where: SeekTarget): Promise<SeekResult>;
  rangeBreakdown(span: Range): Promise<RangeBreakdown>;
  /** A breakdown; where Python answers and `asked` is given, sorted and filtered by it. */
  table(by: string, asked?: TableRequest): Promise<TableData>;
  tree(): Promise<TreeData>;
  sourceCode(): Promise<SourceCell[]>;
  /** Tells what is selected, for `widget.selection`; windows asked for from now on light it. */
  setSelection(query: SelectionQuery | null, span: Range | null): void;
  /** Calls back when Python selects. */
  onSelect(onSelection: (query: SelectionQuery | null) => void): void;
}
