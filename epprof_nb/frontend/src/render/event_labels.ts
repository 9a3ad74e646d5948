// Labels on events, and the outline of the selected one.

import { memoize } from "../base/memoize.ts";
import { toPixel } from "../base/time_scale.ts";
import type { RowSlice } from "../data/events.ts";
import { KIND, type Kind } from "../data/kinds.ts";
import { visibleEvents } from "../data/visible_events.ts";
import { elide } from "./elide.ts";
import { colourCode, coloursOf } from "./event_colours.ts";
import { GAP, shape } from "./event_style.ts";
import type { Band, Frame } from "./renderer.ts";
import { wideEvents } from "./wide_events.ts";

export const FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
/** Minimum size of a rectangle with a label. */
const TEXT_WIDTH = 34;
const TEXT_HEIGHT = 12;
const LONGEST = 300;
/** Step of the label width, so that an elided text serves many frames of a zoom. */
const ROOM_STEP = 4;
/** Maximum number of names that an elided one is compared with. */
const MAX_NAMES = 500;

/** Displayed names of a row's events, and their elided forms by width. */
interface Row {
  names: string[];
  elided: Map<string, string>;
}

export class EventLabels {
  readonly #widths = new Map<string, number>();
  readonly #rows = new WeakMap<RowSlice, Row>();

  constructor(private readonly context: CanvasRenderingContext2D) {}

  draw(slice: RowSlice, band: Band, frame: Frame): void {
    const { set } = slice;
    const { view, width, highlight } = frame;
    if (band.height >= TEXT_HEIGHT) {
      const [first, end] = visibleEvents(slice, view);
      const least = (TEXT_WIDTH * (view.end - view.start)) / width;
      const bright = highlight?.[set.prefix];
      wideEvents(set.dur).each(first, end, least, (event) => {
        // A merged rectangle has no label: its name belongs to one event only.
        if ((bright && !bright[event]) || (set.members && set.members[event] > 1)) return;
        const { left, right } = extent(slice, event, frame);
        if (right - left > TEXT_WIDTH) this.#label(slice, event, band, frame, left, right);
      });
    }
    const chosen = highlight?.outlined;
    if (chosen?.prefix === set.prefix && chosen.event >= slice.first && chosen.event < slice.end)
      this.#outline(slice, chosen.event, band, frame);
  }

  #label(
    slice: RowSlice,
    event: number,
    band: Band,
    { palette }: Frame,
    left: number,
    right: number,
  ): void {
    const c = this.context;
    const kind = (slice.set.kind?.[event] ?? 0) as Kind;
    const from = Math.max(left, 0) + 5;
    const activity = band.look === "activity";
    const shown = this.#fit(slice, slice.set.label(event), right - from - 3, !activity);
    if (!shown) return;
    const { fill, text: colour } = coloursOf(
      band,
      palette,
      colourCode(kind, slice.set.variant?.[event]),
    );
    if (!colour) return;
    if (activity && kind === KIND.memcpy) {
      // On hatching, text needs a background of its own.
      c.fillStyle = fill;
      c.fillRect(from - 2, band.y + 3, this.#measure(shown) + 4, band.height - 6);
    }
    c.fillStyle = colour;
    c.fillText(shown, from, band.y + band.height / 2 + 0.5);
  }

  #outline(slice: RowSlice, event: number, band: Band, frame: Frame): void {
    const c = this.context;
    const { left, right } = extent(slice, event, frame);
    const { y, height } = shape(band, (slice.set.kind?.[event] ?? 0) as Kind);
    c.strokeStyle = frame.palette.select;
    c.lineWidth = 1.5;
    c.strokeRect(left - 0.25, y + 0.25, Math.max(right - left, 1.5), height - 0.5);
  }

  #measure(text: string): number {
    return memoize(this.#widths, text, () => this.context.measureText(text).width);
  }

  #fit(slice: RowSlice, text: string, room: number, statement: boolean): string {
    const line = firstCharacters(text);
    if (this.#measure(line) <= room) return line;
    const steps = Math.floor(room / ROOM_STEP);
    const { names, elided: cuts } = this.#row(slice);
    return memoize(cuts, `${steps} ${line}`, () =>
      elide(line, steps * ROOM_STEP, statement, (part) => this.#measure(part), names),
    );
  }

  #row(slice: RowSlice): Row {
    let row = this.#rows.get(slice);
    if (!row) {
      const all = slice.set.labels?.(slice.first, slice.end) ?? [];
      const some = all.slice(0, MAX_NAMES);
      const names = new Set(some.map(firstCharacters));
      row = { names: [...names], elided: new Map() };
      this.#rows.set(slice, row);
    }
    return row;
  }
}

function firstCharacters(text: string): string {
  return text.length > LONGEST ? text.slice(0, LONGEST) : text;
}

/** Left and right edge of an event in pixels, clipped a little outside the window. */
function extent(
  { set }: RowSlice,
  event: number,
  { view, width }: Frame,
): { left: number; right: number } {
  const left = Math.max(toPixel(set.start[event], view, width), -2);
  const right = Math.min(toPixel(set.start[event] + set.dur[event], view, width), width + 2);
  return { left, right: right - left > GAP.from ? right - GAP.gap : right };
}
