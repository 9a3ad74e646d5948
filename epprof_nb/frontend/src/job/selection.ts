// Cells of the strips of a job, and the text and the code of those that are selected.

import { count, duration, percent } from "../base/format.ts";
import type { Range } from "../base/time_scale.ts";

/** The strips as Python drew them; lengths in units of the picture, times in nanoseconds. */
export interface StripsData {
  left: number;
  top: number;
  /** Width of the strips, and height of a row. */
  plot: number;
  row: number;
  span: number;
  labels: string[];
  /** Ranks of each row. */
  ranks: number[][];
  /** Percentages by row and bin; null if not known. */
  busy: (number | null)[][];
  waiting: (number | null)[][];
}

export interface Cell {
  row: number;
  bin: number;
}

/** Maximum number of ranks of a window that the timeline shows. */
export const MAX_RANKS = 8;

const bins = (data: StripsData): number => data.busy[0].length;

/** Move a cell within the strips. */
export function moved(data: StripsData, { row, bin }: Cell, rows: number, right: number): Cell {
  return {
    row: Math.min(Math.max(row + rows, 0), data.labels.length - 1),
    bin: Math.min(Math.max(bin + right, 0), bins(data) - 1),
  };
}

/** The cell at a point of the picture, the nearest one if it is beside the strips. */
export function cellAt(data: StripsData, x: number, y: number): Cell {
  const row = Math.floor((y - data.top) / data.row);
  const bin = Math.floor(((x - data.left) / data.plot) * bins(data));
  return moved(data, { row: 0, bin: 0 }, row, bin);
}

/** Time range of a selection. */
export function timesOf(data: StripsData, one: Cell, other: Cell): Range {
  const at = (edge: number): number => Math.round((edge / bins(data)) * data.span);
  return { start: at(Math.min(one.bin, other.bin)), end: at(Math.max(one.bin, other.bin) + 1) };
}

/** Ranks of a selection. */
export function ranksOf(data: StripsData, one: Cell, other: Cell): number[] {
  return data.ranks.slice(Math.min(one.row, other.row), Math.max(one.row, other.row) + 1).flat();
}

/** Describe a cell. */
export function cellText(data: StripsData, cell: Cell): string {
  const { start } = timesOf(data, cell, cell);
  const busy = data.busy[cell.row][cell.bin];
  const waiting = data.waiting[cell.row][cell.bin];
  const place = `${data.labels[cell.row]} at ${duration(start)}`;
  if (busy === null) return `${place}: not recorded`;
  const wait = waiting ? `, waiting for a later rank ${percent(waiting / 100)}` : "";
  return `${place}: devices busy ${percent(busy / 100)}${wait}`;
}

/** Describe a selection, and return the code that opens it in the timeline, if there is one. */
export function selectionText(
  data: StripsData,
  one: Cell,
  other: Cell,
): { text: string; code: string } {
  const { start, end } = timesOf(data, one, other);
  const ranks = ranksOf(data, one, other);
  const labels = [one, other].map(({ row }) => row).sort((a, b) => a - b);
  const [first, last] = labels.map((row) => data.labels[row]);
  const rows = first === last ? first : `${first} to ${last}`;
  const text = `${duration(start)} to ${duration(end)}, ${rows}`;
  if (ranks.length > MAX_RANKS)
    return { text: `${text}: select at most ${MAX_RANKS} ranks for the timeline`, code: "" };
  const [from, to] = [start, end].map((time) => count(time).replaceAll(",", "_"));
  return { text, code: `job.window(${from}, ${to}, ranks=[${ranks.join(", ")}]).timeline()` };
}
