// The lanes from top to bottom: where each row lies, given which lanes are folded.

import type { Events, Lane, Slice } from "./model.ts";
import type { Band } from "./renderer.ts";

const OP_ROW = 17;
const API_ROW = 15;
const FOLDED = 6;
const STREAM_ROW = 19;
const FOOT = 4;
const LEAD = 4;
const GAP = 7;

export interface PlacedLane {
  lane: Lane;
  index: number;
  y: number;
  height: number;
  folded: boolean;
  bands: { slice: Slice; band: Band }[];
}

/** Places the lanes; `folded` holds the positions of lanes shown as a thin strip. */
export function place(lanes: Lane[], events: Events, folded: Set<number>): PlacedLane[] {
  const placed: PlacedLane[] = [];
  const slices = events.sets().flatMap((set) => set.slices);
  let y = 0;
  lanes.forEach((lane, index) => {
    const thin = folded.has(index);
    const mine = slices.filter((slice) => slice.lane === index);
    const row = thin
      ? FOLDED
      : lane.kind === "stream"
        ? STREAM_ROW
        : lane.kind === "api"
          ? API_ROW
          : OP_ROW;
    const rows = thin ? 1 : lane.rows;
    // A lane of waits alone still has room for its label.
    const lead = rows === 0 ? LEAD : 0;
    const foot = lane.kind === "stream" && !thin && mine.some((slice) => slice.row < 0);
    const bands = mine
      .filter((slice) => !thin || slice.row === 0)
      .map((slice) => ({
        slice,
        band:
          slice.row < 0
            ? ({ y: y + lead + rows * row + 1, height: FOOT, look: "foot" } as Band)
            : ({ y: y + slice.row * row, height: row - 1, look: look(lane) } as Band),
      }));
    const height = lead * 2 + rows * row + (foot ? FOOT + 1 : 0);
    placed.push({ lane, index, y, height, folded: thin, bands });
    y += height + GAP;
  });
  return placed;
}

function look(lane: Lane): Band["look"] {
  return lane.kind === "ops" ? "op" : lane.kind === "api" ? "api" : "activity";
}

/** Height of all lanes together. */
export function total(placed: PlacedLane[]): number {
  const last = placed.at(-1);
  return last ? last.y + last.height + GAP : 0;
}

/** The slices of the row under `y`, the foot included; a few pixels of a gap count as the lane. */
export function slicesAt(placed: PlacedLane[], y: number): Slice[] {
  for (const lane of placed) {
    if (y < lane.y || y >= lane.y + lane.height + 1) continue;
    return lane.bands
      .filter(({ band }) => y >= band.y && y < band.y + band.height + 1)
      .map(({ slice }) => slice);
  }
  return [];
}
