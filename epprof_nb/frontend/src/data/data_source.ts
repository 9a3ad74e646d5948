// Interface of the viewer's data sources: the payload of a static page (embedded_source.ts), or
// Python behind a live widget (live_source.ts).

import type { Range } from "../base/time_scale.ts";
import type { RangeBreakdown } from "./by_range.ts";
import type { Events, Fields } from "./events.ts";
import type { Holders } from "./memory_holders.ts";
import type { Related, SeekTarget, SelectionQuery } from "./selection_queries.ts";
import type { Bundle } from "./wire_format.ts";
import type {
  EventRef,
  ProfileHeader,
  SeekResult,
  SourceCell,
  TableData,
  TreeData,
} from "./wire_types.ts";

/**
 * Window to load: time range, width in pixels, and the lanes in view as [first, end); null for all.
 */
export interface WindowRequest {
  view: Range;
  width: number;
  lanes: [first: number, end: number] | null;
}

/** Sorting and filtering that Python applies to all rows of a breakdown. */
export interface TableRequest {
  sort: string;
  descending: boolean;
  pattern: string;
}

/** Parts of the header that are known only after all events were read. */
export type LateHeader = Pick<ProfileHeader, "headline" | "findings" | "gaps">;

export interface DataSource {
  /** Whether Python answers, so that anything not sent yet can be requested. */
  readonly live: boolean;
  /** Whether windows can be loaded that have more detail than the first view. */
  readonly zooms: boolean;
  /** Load the events of a window; null if the embedded ones are the best available. */
  window(ask: WindowRequest): Promise<Events | null>;
  /** Load the headline, findings and idle gaps. */
  headline(): Promise<LateHeader>;
  /** Load the columns of the header's counters; a live source also loads columns of a window. */
  counters(window?: Range): Promise<Bundle<object>>;
  describe(at: EventRef): Promise<Fields>;
  /** Load the relations of an event; if it has very many flows, only those in `window`. */
  related(at: EventRef, window: Range): Promise<Related>;
  /** Count the events of a query, and find one of them. */
  seek(query: SelectionQuery, where: SeekTarget): Promise<SeekResult>;
  byRange(range: Range): Promise<RangeBreakdown>;
  /** Load the holders of memory at a time. */
  memoryAt(time: number): Promise<Holders | null>;
  /** Load a breakdown; a live source sorts and filters it as requested. */
  table(by: string, request?: TableRequest): Promise<TableData>;
  /** Tree of paths: "tree", "module_tree" of modules, "stack_tree" or "full_stack_tree". */
  tree(by: string): Promise<TreeData>;
  sourceCode(): Promise<SourceCell[]>;
  /** Load the profile as a compressed Chrome trace; null without Python. */
  trace(): Promise<Uint8Array<ArrayBuffer> | null>;
  /**
   * Report the selection, for `widget.selection`; a live source highlights it in windows requested
   * later.
   */
  setSelection(query: SelectionQuery | null, range: Range | null): void;
  /** Register the listener for selections made in Python. */
  onSelect(listener: (query: SelectionQuery | null) => void): void;
}
