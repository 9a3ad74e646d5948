// Views that zoom and move together, such as the views before and after a change.
//
// They communicate through events of the document, because each widget has a copy of this module.

import type { Range } from "../base/time_scale.ts";
import type { Viewport } from "../base/viewport.ts";

export interface Link {
  group: string;
  /** Time that is shown at the same place as the origins of the others. */
  origin: number;
  /** Time range that is shown first, from the origin on; none if empty. */
  first: Range;
}

interface Moved {
  from: Viewport;
  /** Time range from the origin on. */
  view: Range;
}

/** Link a view to the others of its group. Returns a function that removes the link. */
export function linkView({ group, origin, first }: Link, viewport: Viewport): () => void {
  const name = `epprof-moved-${group}`;
  const ended = new AbortController();
  /** Whether the view follows another one; it then sends no event. */
  let following = false;
  const shift = ({ start, end }: Range, by: number): Range => ({
    start: start + by,
    end: end + by,
  });
  document.addEventListener(
    name,
    (event) => {
      const { from, view } = (event as CustomEvent<Moved>).detail;
      if (from === viewport) return;
      following = true;
      viewport.set(shift(view, origin));
      following = false;
    },
    { signal: ended.signal },
  );
  const unwatch = viewport.watch((view) => {
    if (following) return;
    const detail: Moved = { from: viewport, view: shift(view, -origin) };
    document.dispatchEvent(new CustomEvent(name, { detail }));
  });
  if (first.end > first.start) viewport.set(shift(first, origin));
  return () => {
    ended.abort();
    unwatch();
  };
}
