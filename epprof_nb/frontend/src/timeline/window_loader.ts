// What the timeline asks for as it moves. A static page has all its events at hand: it asks nothing.

import type { Range } from "../base/time_scale.ts";
import type { DataSource } from "../data/data_source.ts";
import type { Events, Overview } from "../data/model.ts";
import { Loader } from "../data/window_cache.ts";
import type { Geometry } from "./geometry.ts";

/** Of more lanes only those in view are asked for at full resolution. */
const FEW_LANES = 48;
/** Pixels of the first picture, as views/pack.py has it. */
const FIRST_WIDTH = 1200;

export class Loading {
  readonly #loader: Loader | null = null;

  constructor(
    private readonly overview: Overview,
    source: DataSource,
    first: Events,
    { use, say }: { use(events: Events, sent: Range): void; say(text: string): void },
  ) {
    if (!source.live) return;
    const whole = { start: overview.range[0], end: overview.range[1] };
    this.#loader = new Loader(source, whole, use, say);
    this.#loader.add({ view: whole, width: FIRST_WIDTH, lanes: null }, first);
  }

  /** Has what the window needs, where it is not there already. */
  want(geometry: Geometry): void {
    const lanes = lanesWanted(geometry, this.overview.lanes.length);
    this.#loader?.want({ view: geometry.view, width: geometry.width, lanes });
  }

  /** What is lit has changed: what came before serves no more. */
  forget(): void {
    this.#loader?.forget();
  }

  destroy(): void {
    this.#loader?.destroy();
  }
}

/** The lanes [first, end) to ask for; null for all of them. */
function lanesWanted(geometry: Geometry, all: number): [first: number, end: number] | null {
  if (all <= FEW_LANES) return null;
  const shown = [...geometry.sticky, ...geometry.inView]
    .map(({ index }) => index)
    .filter((index) => index >= 0);
  if (!shown.length) return [0, FEW_LANES];
  // A screenful more below and above: scrolling a little finds them there.
  const first = Math.min(...shown) - shown.length;
  const end = Math.max(...shown) + 1 + shown.length;
  return [Math.max(first, 0), Math.min(end, all)];
}
