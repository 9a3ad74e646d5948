// Where the rows lie: placed anew when other events come, or when rows are folded or pinned.

import type { Range } from "../base/time_scale.ts";
import type { Events, Overview } from "../data/model.ts";
import type { Palette } from "../render/theme.ts";
import { Geometry } from "./geometry.ts";
import type { Arrangement } from "./lane_state.ts";
import { type PlacedLane, place, type Rows, rows, total } from "./lanes.ts";

const RULER = 22;
/** Lanes have at least so many pixels, however much is pinned above them. */
const LEAST_LANES = 60;

export class Layout {
  /** Pixels of the window, and of all rows. */
  height = 0;
  all = 0;
  #sticky: PlacedLane[] = [];
  #lanes: PlacedLane[] = [];

  constructor(
    private readonly overview: Overview,
    private readonly arrangement: Arrangement,
    /** Height of the window at most, pixels. */
    private readonly most: number,
  ) {}

  place(events: Events): void {
    const { sticky, lanes } = place(this.#rows, events, this.arrangement);
    this.#sticky = sticky;
    this.#lanes = lanes;
    this.all = this.#head + total(lanes);
    this.height = Math.min(this.all, Math.max(this.most, this.#head + LEAST_LANES));
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
    return rows(this.#rows).flatMap(({ key, folded }) => (folded === null ? [] : [key]));
  }

  /** The folded row that a lane is hidden in. */
  foldOf(lane: number): string | null {
    const parent = rows(this.#rows).find(({ index }) => index === lane)?.parent;
    return parent && this.arrangement.folded.has(parent) ? parent : null;
  }

  get #head(): number {
    return RULER + total(this.#sticky);
  }

  get #rows(): Rows {
    const { lanes, counters, summary } = this.overview;
    return { lanes, counters, word: summary.device_word };
  }
}
