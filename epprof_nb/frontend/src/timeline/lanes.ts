// The rows of the timeline from top to bottom, given what is folded and what is pinned.

import type { Events, Lane, LaneSlice, Track } from "../data/model.ts";
import type { Band } from "../render/renderer.ts";
import type { Arrangement } from "./lane_state.ts";

const OP_ROW = 17;
const API_ROW = 15;
const FOLDED = 6;
const STREAM_ROW = 19;
const DEVICE_ROW = 22;
const BUSY_ROW = 30;
const COUNTER_ROW = 18;
const FOOT = 4;
const LEAD = 4;
const GAP = 7;
/** From so many streams on a device has a row of its own to fold them into, even a single one. */
const MANY_STREAMS = 9;

export type RowKind = Lane["kind"] | "device" | Track["what"];

export interface PlacedLane {
  /** Tells the row apart from all others, whatever is folded. */
  key: string;
  kind: RowKind;
  /** The lane it shows; null for a counter, or for a device's row. */
  lane: Lane | null;
  /** The lane's position in the overview; -1 for none. */
  index: number;
  /** The counter that is drawn in the row, its position in the overview. */
  counter: number | null;
  label: string;
  title: string;
  /** 1 for what a row above it can fold away. */
  indent: 0 | 1;
  /** Whether it is folded; null where there is nothing to fold. */
  folded: boolean | null;
  pinned: boolean;
  /** Whether it stays while the lanes scroll: then `y` counts from the ruler's lower edge. */
  sticky: boolean;
  y: number;
  height: number;
  bands: { slice: LaneSlice; band: Band }[];
}

export interface Rows {
  lanes: Lane[];
  counters: Track[];
  /** How a device is called: "GPU". */
  word: string;
}

type Row = Omit<PlacedLane, "y" | "height" | "bands" | "pinned" | "sticky"> & {
  /** Key of the row that folds it away. */
  parent: string | null;
};

/** All rows in their order, folded ones included. */
export function rows({ lanes, counters, word }: Rows): Row[] {
  const found: Row[] = [];
  const add = (row: Partial<Row> & Pick<Row, "key" | "kind" | "label" | "title">): void => {
    found.push({
      lane: null,
      index: -1,
      counter: null,
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
      if (counter.device !== device || (!single && counter.what === "busy")) return;
      add({
        key: `counter:${i}`,
        kind: counter.what,
        counter: i,
        label: counter.what === "busy" ? `${word} busy` : COUNTED[counter.what].label,
        title: `${counter.name}: ${COUNTED[counter.what].title}`,
        indent: counter.what === "busy" ? 0 : 1,
        folded: counter.what === "busy" && counters.length > 1 ? false : null,
        parent:
          counter.what === "busy"
            ? null
            : (parent ?? `counter:${counters.findIndex(({ what }) => what === "busy")}`),
      });
    });
  };
  const lane = (index: number, parent: string | null, folded: boolean | null): void => {
    const { kind, label, title } = lanes[index];
    add({
      key: `lane:${index}`,
      kind,
      lane: lanes[index],
      index,
      label: parent ? label.replace(/ · \d+$/, "") : label,
      title,
      indent: parent ? 1 : 0,
      folded,
      parent,
    });
  };
  if (single) for (const device of devices) addCounters(device, null);
  lanes.forEach(({ kind, thread, device }, i) => {
    if (kind === "stream") {
      const many = streams.get(device) ?? 0;
      if (device < 0 || (single && many < MANY_STREAMS)) {
        lane(i, null, null);
        return;
      }
      const key = `device:${device}`;
      if (!headed.has(device)) {
        headed.add(device);
        const busy = counters.findIndex((c) => c.device === device && c.what === "busy");
        const name = counters[busy]?.name ?? `device ${device}`;
        add({
          key,
          kind: "device",
          counter: single || busy < 0 ? null : busy,
          label: `${word} ${device}`,
          title: `${name}, ${many} ${many === 1 ? "stream" : "streams"}`,
          folded: false,
        });
        if (!single) addCounters(device, key);
      }
      lane(i, key, null);
      return;
    }
    const above = kind === "api" ? lanes[i - 1] : undefined;
    const of = above?.kind === "ops" && above.thread === thread ? `lane:${i - 1}` : null;
    lane(i, of, false);
  });
  return found;
}

const COUNTED = {
  busy: { label: "busy", title: "share of time for which it worked" },
  launches: { label: "outstanding", title: "launches given to it and not finished yet" },
  copied: { label: "copies", title: "bytes copied a second" },
};

/** Places the rows: those that stay on top, and those that scroll. */
export function place(
  given: Rows,
  events: Events,
  { folded, pinned }: Pick<Arrangement, "folded" | "pinned">,
): { sticky: PlacedLane[]; lanes: PlacedLane[] } {
  const slices = slicesByLane(events, given.lanes.length);
  const single = new Set(given.counters.map(({ device }) => device)).size <= 1;
  const all = rows(given).filter(
    ({ parent, key }) => pinned.has(key) || parent === null || !folded.has(parent),
  );
  const sticky: PlacedLane[] = [];
  const scrolling: PlacedLane[] = [];
  for (const row of all) {
    const isPinned = pinned.has(row.key);
    // The counters of a single device stand above everything.
    const stays = isPinned || (single && row.kind in COUNTED);
    (stays ? sticky : scrolling).push({
      ...row,
      folded: row.folded === null ? null : folded.has(row.key),
      pinned: isPinned,
      sticky: stays,
      y: 0,
      ...shape(row, slices, folded.has(row.key), given.lanes),
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

/** A row's height, and its bands counted from its upper edge. */
function shape(
  row: Row,
  slices: LaneSlice[][],
  folded: boolean,
  lanes: Lane[],
): Pick<PlacedLane, "height" | "bands"> {
  if (row.kind === "busy") return { height: BUSY_ROW, bands: [] };
  if (row.kind === "launches" || row.kind === "copied") return { height: COUNTER_ROW, bands: [] };
  if (row.kind === "device") {
    // Folded, it shows the first row of all its streams as one.
    const mine = Number(row.key.slice("device:".length));
    const own = folded && row.counter === null ? slices.flat() : [];
    const bands = own
      .filter((slice) => lanes[slice.lane].device === mine && slice.row === 0)
      .map((slice) => ({
        slice,
        band: { y: 0, height: STREAM_ROW - 1, look: "activity" } as Band,
      }));
    return { height: DEVICE_ROW, bands };
  }
  const lane = row.lane as Lane;
  const mine = slices[row.index];
  const each = folded
    ? FOLDED
    : lane.kind === "stream"
      ? STREAM_ROW
      : lane.kind === "api"
        ? API_ROW
        : OP_ROW;
  const count = folded ? 1 : lane.rows;
  // A lane of waits alone still has room for its label.
  const lead = count === 0 ? LEAD : 0;
  const foot = lane.kind === "stream" && !folded && mine.some((slice) => slice.row < 0);
  const bands = mine
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

/** Height of all rows together. */
export function total(placed: PlacedLane[]): number {
  const last = placed.at(-1);
  return last ? last.y + last.height + GAP : 0;
}

/** The row under `y`; its gap below counts as well. */
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

/** The slices of the row under `y`, the foot included; a few pixels of a gap count as the lane. */
export function slicesAt(placed: PlacedLane[], y: number): LaneSlice[] {
  const row = rowAt(placed, y);
  if (!row || y >= row.y + row.height + 1) return [];
  return row.bands
    .filter(({ band }) => y >= band.y && y < band.y + band.height + 1)
    .map(({ slice }) => slice);
}
