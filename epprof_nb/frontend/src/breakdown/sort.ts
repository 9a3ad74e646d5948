// Sorting of the rows by a column.

import type { Cell } from "../data/wire_types.ts";

const WORDS = new Intl.Collator("en", { numeric: true });

/**
 * Sort positions of `values`; missing values come last in both directions, ties keep their order.
 */
export function sortedRows(values: Cell[], descending: boolean): number[] {
  const sign = descending ? -1 : 1;
  return values
    .map((_, i) => i)
    .sort((a, b) => {
      const left = values[a];
      const right = values[b];
      if (left === null || right === null) {
        return left === right ? a - b : left === null ? 1 : -1;
      }
      if (left === right) return a - b;
      if (typeof left === "string" || typeof right === "string") {
        return sign * WORDS.compare(String(left), String(right)) || a - b;
      }
      return sign * (Number(left) - Number(right));
    });
}
