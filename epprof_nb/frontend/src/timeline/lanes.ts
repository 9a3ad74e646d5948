// Rows of the timeline from top to bottom, given the folded and pinned ones.

import type { Events, LaneSlice } from "../data/events.ts";
import type { Counter, DeviceLabels, Lane } from "../data/wire_types.ts";
import type { Band } from "../render/renderer.ts";
import { COUNTER_TYPES } from "./counter_tracks.ts";
import { type LaneState, OTHER_THREADS } from "./lane_state.ts";

const OP_ROW = 17;
const API_ROW = 15;
const FOLDED = 6;
const STREAM_ROW = 19;
const DEVICE_ROW = 22;
const FOOT = 4;
const LEAD = 4;
const GAP = 7;
/** From this number of streams on, even a single device gets a row that folds them. */
const MANY_STREAMS = 9;
/** Number of threads with open lanes; a row folds the others, so that the streams stay in view. */
const OPEN_THREADS = 4;

type RowKind = Lane["kind"] | "device" | "threads" | Counter["what"];

export interface PlacedLane {
  /** Unique key of the row, independent of folding. */
  key: string;
  kind: RowKind;
  /** Lane shown; null for a counter or a device row. */
  lane: Lane | null;
  /** Index of the lane in the header; -1 for none. */
  index: number;
  /** Index of the counter drawn in the row. */
  counter: number | null;
  /** Names of its areas, in their order from the top; in rows with room for them. */
  parts: string[];
  label: string;
  title: string;
  /** 1 if another row can fold it away. */
  indent: 0 | 1;
  /** Whether it is folded; null if it cannot be folded. */
  folded: boolean | null;
  pinned: boolean;
  /**
   * Whether it stays in place while the lanes scroll; then `y` is relative to the ruler's lower
   * edge.
   */
  sticky: boolean;
  y: number;
  height: number;
  bands: { slice: LaneSlice; band: Band }[];
}

export interface RowSource {
  lanes: Lane[];
  counters: Counter[];
  devices: DeviceLabels;
  /** Word for a device, such as "GPU". */
  word: string;
}

type Row = Omit<PlacedLane, "y" | "height" | "bands" | "pinned" | "sticky"> & {
  /** Key of the row that folds this one away. */
  parent: string | null;
};

/** Whether the lanes are grouped by process, so that threads follow streams. */
export function areByProcess(lanes: readonly Pick<Lane, "kind">[]): boolean {
  return lanes.some(({ kind }, i) => kind !== "stream" && lanes[i - 1]?.kind === "stream");
}

/** All rows in order, folded ones included. */
export function buildRows({ lanes, counters, devices: labels, word }: RowSource): Row[] {
  const result: Row[] = [];
  const add = (row: Partial<Row> & Pick<Row, "key" | "kind" | "label" | "title">): void => {
    result.push({
      lane: null,
      index: -1,
      counter: null,
      parts: [],
      indent: 0,
      folded: null,
      parent: null,
      ...row,
    });
  };
  const devices = [...new Set(counters.map(({ device }) => device))];
  const streams = new Map<number, number>();
  for (const { kind, device } of lanes)
    if (kind === "stream") streams.set(device, (streams.get(device) ?? 0) + 1);
  const headed = new Set<number>();
  const single = devices.length <= 1;
  const addCounters = (device: number, parent: string | null): void => {
    counters.forEach((counter, i) => {
      const { main, label, title } = COUNTER_TYPES[counter.what];
      if (counter.device !== device || (main && !single)) return;
      add({
        key: `counter:${i}`,
        kind: counter.what,
        counter: i,
        parts: counter.what === "memory" ? [...(counter.parts ?? [])].reverse() : [],
        label: label(word),
        title: `${counter.name}: ${title}`,
        indent: main ? 0 : 1,
        folded: main && counters.length > 1 ? false : null,
        parent: main ? null : (parent ?? `counter:${counters.findIndex(isMain)}`),
      });
    });
  };
  const lane = (index: number, parent: string | null, folded: boolean | null): void => {
    const { kind, label, title, device_label: device } = lanes[index];
    add({
      key: `lane:${index}`,
      kind,
      lane: lanes[index],
      index,
      label: parent || !device ? label : `${label} · ${device}`,
      title,
      indent: parent ? 1 : 0,
      folded,
      parent,
    });
  };
  const head = (device: number, many: number): void => {
    if (headed.has(device)) return;
    headed.add(device);
    const key = `device:${device}`;
    const busy = counters.findIndex((c) => c.device === device && isMain(c));
    const label = labels[device] ?? `device ${device}`;
    const name = counters[busy]?.name ?? label;
    add({
      key,
      kind: "device",
      counter: single || busy < 0 ? null : busy,
      label,
      title: `${name}, ${many} ${many === 1 ? "stream" : "streams"}`,
      folded: false,
    });
    if (!single) addCounters(device, key);
  };
  if (single) for (const device of devices) addCounters(device, null);
  const threads = [...new Set(lanes.flatMap((of) => (of.kind === "stream" ? [] : of.thread)))];
  // A row in place of a single lane would save nothing.
  const folds = threads.length > OPEN_THREADS + 1 && !areByProcess(lanes);
  const others = new Set(folds ? threads.slice(OPEN_THREADS) : []);
  lanes.forEach(({ kind, thread, device }, i) => {
    if (kind === "stream") {
      const many = streams.get(device) ?? 0;
      if (device < 0 || (single && many < MANY_STREAMS)) {
        lane(i, null, null);
        return;
      }
      head(device, many);
      lane(i, `device:${device}`, null);
      return;
    }
    const above = kind === "api" ? lanes[i - 1] : undefined;
    const calls = above?.kind === "ops" && above.thread === thread;
    const other = others.has(thread) ? OTHER_THREADS : null;
    if (other && !headed.has(-1)) {
      headed.add(-1);
      const label = `${others.size} more threads`;
      add({ key: other, kind: other, label, title: label, folded: false });
    }
    lane(i, calls ? `lane:${i - 1}` : other, false);
  });
  // A device may have memory in use without any work.
  if (!single) for (const { device, parts } of counters) if (parts) head(device, 0);
  return result;
}

function isMain({ what }: Counter): boolean {
  return COUNTER_TYPES[what].main;
}

function isCounter(kind: RowKind): kind is Counter["what"] {
  return kind in COUNTER_TYPES;
}

/** Place the rows: fixed ones on top, and scrolling ones. */
export function placeRows(
  source: RowSource,
  events: Events,
  { folded, pinned }: Pick<LaneState, "folded" | "pinned">,
): { sticky: PlacedLane[]; lanes: PlacedLane[] } {
  const slices = slicesByLane(events, source.lanes.length);
  const single = new Set(source.counters.map(({ device }) => device)).size <= 1;
  const rows = buildRows(source);
  // Folded rows and those hidden below them; a row comes after its parent.
  const closed = new Set(folded);
  const all = rows.filter(({ parent, key }) => {
    if (pinned.has(key) || parent === null || !closed.has(parent)) return true;
    closed.add(key);
    return false;
  });
  const sticky: PlacedLane[] = [];
  const scrolling: PlacedLane[] = [];
  for (const row of all) {
    const isPinned = pinned.has(row.key);
    // The counters of a single device stay above everything.
    const stays = isPinned || (single && isCounter(row.kind));
    (stays ? sticky : scrolling).push({
      ...row,
      folded: row.folded === null ? null : folded.has(row.key),
      pinned: isPinned,
      sticky: stays,
      y: 0,
      ...rowShape(row, slices, folded.has(row.key), rows),
    });
  }
  const byPin = [...pinned];
  sticky.sort((a, b) => byPin.indexOf(a.key) - byPin.indexOf(b.key));
  for (const part of [sticky, scrolling]) stack(part);
  return { sticky, lanes: scrolling };
}

function stack(part: PlacedLane[]): void {
  let y = 0;
  for (const row of part) {
    row.y = y;
    row.bands = row.bands.map(({ slice, band }) => ({ slice, band: { ...band, y: band.y + y } }));
    y += row.height + GAP;
  }
}

function slicesByLane(events: Events, lanes: number): LaneSlice[][] {
  const by: LaneSlice[][] = Array.from({ length: lanes }, () => []);
  for (const set of events.sets()) for (const slice of set.slices) by[slice.lane]?.push(slice);
  return by;
}

/** Height of a row, and its bands relative to its upper edge. */
function rowShape(
  row: Row,
  slices: LaneSlice[][],
  folded: boolean,
  rows: Row[],
): Pick<PlacedLane, "height" | "bands"> {
  if (isCounter(row.kind)) return { height: COUNTER_TYPES[row.kind].height, bands: [] };
  if (!row.lane) {
    // A folded group shows the first row of each of its lanes.
    const own = folded && row.counter === null ? rows.filter((of) => of.parent === row.key) : [];
    const device = row.kind === "device";
    const height = (device ? STREAM_ROW : OP_ROW) - 1;
    const bands = own.flatMap(({ lane, index }) =>
      (slices[index] ?? [])
        .filter((slice) => slice.row === 0)
        .map((slice) => ({ slice, band: { y: 0, height, look: look(lane as Lane) } as Band })),
    );
    return { height: device ? DEVICE_ROW : OP_ROW, bands };
  }
  const lane = row.lane;
  const laneSlices = slices[row.index];
  const each = folded
    ? FOLDED
    : lane.kind === "stream"
      ? STREAM_ROW
      : lane.kind === "api"
        ? API_ROW
        : OP_ROW;
  const count = folded ? 1 : lane.rows;
  // A lane with only synchronizations still has room for its label.
  const lead = count === 0 ? LEAD : 0;
  const foot = lane.kind === "stream" && !folded && laneSlices.some((slice) => slice.row < 0);
  const bands = laneSlices
    .filter((slice) => !folded || slice.row === 0)
    .map((slice) => ({
      slice,
      band:
        slice.row < 0
          ? ({ y: lead + count * each + 1, height: FOOT, look: "foot" } as Band)
          : ({ y: slice.row * each, height: each - 1, look: look(lane) } as Band),
    }));
  return { height: lead * 2 + count * each + (foot ? FOOT + 1 : 0), bands };
}

function look(lane: Lane): Band["look"] {
  return lane.kind === "ops" ? "op" : lane.kind === "api" ? "api" : "activity";
}

/** Total height of the rows. */
export function totalHeight(placed: PlacedLane[]): number {
  const last = placed.at(-1);
  return last ? last.y + last.height + GAP : 0;
}

/** Find the row at `y`; the gap below it counts as part of it. */
export function rowAt(placed: PlacedLane[], y: number): PlacedLane | null {
  let low = 0;
  let high = placed.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (placed[middle].y + placed[middle].height + GAP <= y) low = middle + 1;
    else high = middle;
  }
  return placed[low] && y >= placed[low].y ? placed[low] : null;
}

/** Slices of the row at `y`, including the foot; a pixel of tolerance. */
export function slicesAt(placed: PlacedLane[], y: number): LaneSlice[] {
  const row = rowAt(placed, y);
  if (!row || y >= row.y + row.height + 1) return [];
  return row.bands
    .filter(({ band }) => y >= band.y && y < band.y + band.height + 1)
    .map(({ slice }) => slice);
}
