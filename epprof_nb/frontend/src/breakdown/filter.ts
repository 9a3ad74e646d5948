// Which rows of a table are shown, and in which order.

import { compile } from "../data/embedded/pattern.ts";
import type { TableData } from "../data/model.ts";
import { isText } from "./column_specs.ts";
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

/** Finds texts that hold the pattern, as it is written or as a regular expression. */
export class Matcher {
  /** Why the pattern is read as text only, as far as is known by now. */
  note = "";
  readonly #wanted: string;
  readonly #test: ((text: string) => boolean) | undefined;

  constructor(pattern: string) {
    this.#wanted = pattern.toLowerCase();
    try {
      this.#test = compile(pattern, true);
    } catch (error) {
      this.#refuse(error);
    }
  }

  fits(text: string): boolean {
    if (text.toLowerCase().includes(this.#wanted)) return true;
    if (!this.#test || this.note) return false;
    try {
      return this.#test(text);
    } catch (error) {
      this.#refuse(error);
      return false;
    }
  }

  #refuse(error: unknown): void {
    this.note = `${error instanceof Error ? error.message : error} Looked for as text.`;
  }
}

export function arrange(table: TableData, sort: Sort, pattern: string): Arranged {
  const key = table.columns.find(({ name }) => name === sort.column);
  const length = table.columns[0]?.values.length ?? 0;
  const rows = key ? order(key.values, sort.descending) : [...Array(length).keys()];
  if (!pattern) return { rows, note: "" };
  const matcher = new Matcher(pattern);
  const texts = table.columns.filter(({ name }) => isText(name));
  const kept = rows.filter((i) =>
    texts.some(({ values }) => values[i] !== null && matcher.fits(String(values[i]))),
  );
  return { rows: kept, note: matcher.note };
}
