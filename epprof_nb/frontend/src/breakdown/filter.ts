// Filtering and sorting of a table's rows.

import { compile } from "../data/embedded/search_pattern.ts";
import type { TableData } from "../data/wire_types.ts";
import { isText } from "./column_specs.ts";
import { sortedRows } from "./sort.ts";

export interface Sort {
  column: string;
  descending: boolean;
}

interface FilteredRows {
  /** Positions of the rows in order. */
  rows: number[];
  /** Why the filter is not used as a regular expression; empty if it is. */
  note: string;
}

/** Matches texts that contain the pattern literally or as a regular expression. */
export class Matcher {
  /** Why the pattern is not used as a regular expression; empty if it is. */
  note = "";
  readonly #text: string;
  readonly #test: ((text: string) => boolean) | undefined;

  constructor(pattern: string) {
    this.#text = pattern.toLowerCase();
    try {
      this.#test = compile(pattern, true);
    } catch (error) {
      this.#useTextOnly(error);
    }
  }

  matches(text: string): boolean {
    if (text.toLowerCase().includes(this.#text)) return true;
    if (!this.#test || this.note) return false;
    try {
      return this.#test(text);
    } catch (error) {
      this.#useTextOnly(error);
      return false;
    }
  }

  #useTextOnly(error: unknown): void {
    this.note = `${error instanceof Error ? error.message : error} Searched as plain text.`;
  }
}

export function filterAndSort(table: TableData, sort: Sort, pattern: string): FilteredRows {
  const key = table.columns.find(({ name }) => name === sort.column);
  const length = table.columns[0]?.values.length ?? 0;
  const rows = key ? sortedRows(key.values, sort.descending) : [...Array(length).keys()];
  if (!pattern) return { rows, note: "" };
  const matcher = new Matcher(pattern);
  const texts = table.columns.filter(({ name }) => isText(name));
  const kept = rows.filter((i) =>
    texts.some(({ values }) => values[i] !== null && matcher.matches(String(values[i]))),
  );
  return { rows: kept, note: matcher.note };
}
