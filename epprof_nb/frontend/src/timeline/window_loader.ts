// Window requests of the timeline as it moves. A page in a notebook has no more events than the first
// view, so it requests nothing.

import type { Range } from "../base/time_scale.ts";
import type { DataSource } from "../data/data_source.ts";
import type { Events } from "../data/events.ts";
import { WindowCache } from "../data/window_cache.ts";
import type { ProfileHeader } from "../data/wire_types.ts";
import type { Geometry } from "./geometry.ts";

/** With more lanes than this, only those in view are requested at full resolution. */
const FEW_LANES = 48;
/** Width of the first window in pixels; must match the Python payload. */
const FIRST_WIDTH = 1200;

export class WindowLoader {
  readonly #cache: WindowCache | null = null;

  constructor(
    private readonly header: ProfileHeader,
    source: DataSource,
    first: Events,
    { use, say }: { use(events: Events, sent: Range): void; say(text: string): void },
  ) {
    if (!source.zooms) return;
    const whole = { start: header.range[0], end: header.range[1] };
    this.#cache = new WindowCache(source, whole, use, say);
    this.#cache.add({ view: whole, width: FIRST_WIDTH, lanes: null }, first);
  }

  /** Request the events of the window unless they are loaded. */
  request(geometry: Geometry): void {
    const lanes = lanesToRequest(geometry, this.header.lanes.length);
    this.#cache?.request({ view: geometry.view, width: geometry.width, lanes });
  }

  /** Drop the loaded windows, because the highlighted events have changed. */
  clear(): void {
    this.#cache?.clear();
  }

  destroy(): void {
    this.#cache?.destroy();
  }
}

/** Range of lanes to request; null for all of them. */
function lanesToRequest(geometry: Geometry, all: number): [first: number, end: number] | null {
  if (all <= FEW_LANES) return null;
  const shown = [...geometry.sticky, ...geometry.inView]
    .map(({ index }) => index)
    .filter((index) => index >= 0);
  if (!shown.length) return [0, FEW_LANES];
  // One more screen of lanes above and below, so that small scrolls need no request.
  const first = Math.min(...shown) - shown.length;
  const end = Math.max(...shown) + 1 + shown.length;
  return [Math.max(first, 0), Math.min(end, all)];
}
