// Which rows of a table are shown, and in which order.

import { isText } from "./columns.ts";
import type { TableData } from "./model.ts";
import { order } from "./sort.ts";

export interface Sort {
  column: string;
  descending: boolean;
}

export interface Arranged {
  /** Positions of the rows, in order. */
  rows: number[];
  /** Why the filter is read as text only; empty where it is a regular expression too. */
  note: string;
}

/** Whether a text holds the pattern, as it is written or as a regular expression. */
export function matcher(pattern: string): { fits: (text: string) => boolean; note: string } {
  const wanted = pattern.toLowerCase();
  try {
    const expression = new RegExp(pattern, "iu");
    return {
      fits: (text) => text.toLowerCase().includes(wanted) || expression.test(text),
      note: "",
    };
  } catch {
    return {
      fits: (text) => text.toLowerCase().includes(wanted),
      note: "Not a regular expression: looked for as text.",
    };
  }
}

export function arrange(table: TableData, sort: Sort, pattern: string): Arranged {
  const key = table.columns.find(({ name }) => name === sort.column);
  const length = table.columns[0]?.values.length ?? 0;
  const rows = key ? order(key.values, sort.descending) : [...Array(length).keys()];
  if (!pattern) return { rows, note: "" };
  const { fits, note } = matcher(pattern);
  const texts = table.columns.filter(({ name }) => isText(name));
  const kept = rows.filter((i) =>
    texts.some(({ values }) => values[i] !== null && fits(String(values[i]))),
  );
  return { rows: kept, note };
}
