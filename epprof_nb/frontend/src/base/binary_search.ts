// Binary search in sorted columns.

/** Find the first position in [low, high) whose value is above `limit`; values must not descend. */
export function firstAbove(values: Float64Array, limit: number, low: number, high: number): number {
  let from = low;
  let to = high;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (values[middle] > limit) to = middle;
    else from = middle + 1;
  }
  return from;
}
