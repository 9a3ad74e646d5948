// Placement of the rows; updated when other events are loaded, or rows are folded or pinned.

import type { Range } from "../base/time_scale.ts";
import type { Events } from "../data/events.ts";
import type { ProfileHeader } from "../data/wire_types.ts";
import type { Palette } from "../render/palettes.ts";
import { Geometry } from "./geometry.ts";
import type { LaneState } from "./lane_state.ts";
import { buildRows, type PlacedLane, placeRows, type RowSource, totalHeight } from "./lanes.ts";

const RULER = 22;
/** Minimum height of the scrolling lanes, however much is pinned. */
const LEAST_LANES = 60;

export class RowLayout {
  /** Height of the visible part, and of all rows, in pixels. */
  height = 0;
  totalHeight = 0;
  #sticky: PlacedLane[] = [];
  #lanes: PlacedLane[] = [];

  constructor(
    private readonly header: ProfileHeader,
    private readonly laneState: LaneState,
    /** Maximum height of the visible part in pixels. */
    public maxHeight: number,
  ) {}

  place(events: Events): void {
    const { sticky, lanes } = placeRows(this.#rows, events, this.laneState);
    this.#sticky = sticky;
    this.#lanes = lanes;
    this.totalHeight = this.#head + totalHeight(lanes);
    this.height = Math.min(this.totalHeight, Math.max(this.maxHeight, this.#head + LEAST_LANES));
  }

  geometry(
    { view, width }: { view: Range; width: number },
    palette: Palette,
    scroll: number,
  ): Geometry {
    return new Geometry({
      view,
      width,
      height: this.height,
      palette,
      ruler: RULER,
      head: this.#head,
      scroll,
      sticky: this.#sticky,
      lanes: this.#lanes,
    });
  }

  /** Keys of the rows that can be folded. */
  get foldable(): string[] {
    return buildRows(this.#rows).flatMap(({ key, folded }) => (folded === null ? [] : [key]));
  }

  /** Keys of the folded rows that hide a lane. */
  foldsOf(lane: number): string[] {
    const rows = buildRows(this.#rows);
    const folds: string[] = [];
    let parent = rows.find(({ index }) => index === lane)?.parent;
    while (parent) {
      if (this.laneState.folded.has(parent)) folds.push(parent);
      parent = rows.find(({ key }) => key === parent)?.parent;
    }
    return folds;
  }

  get #head(): number {
    return RULER + totalHeight(this.#sticky);
  }

  get #rows(): RowSource {
    const { lanes, counters, devices, headline } = this.header;
    return { lanes, counters, devices, word: headline.device_word };
  }
}
