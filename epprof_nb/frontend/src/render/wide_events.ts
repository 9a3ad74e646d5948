// Index of the events wide enough for a label, so that a frame need not scan all events.

const BLOCK = 32;

/**
 * Finds large values in a range by the maximum of each block, of each block of blocks, and so on.
 */
export class WideEvents {
  /** Maximum of each block; `levels[1]` has the maximum of each block of `levels[0]`, and so on. */
  readonly #levels: Float64Array[] = [];

  constructor(private readonly values: Float64Array) {
    for (let below = values; below.length > BLOCK; ) {
      const level = new Float64Array(Math.ceil(below.length / BLOCK)).fill(
        Number.NEGATIVE_INFINITY,
      );
      for (let i = 0; i < below.length; i++) {
        const block = Math.floor(i / BLOCK);
        if (below[i] > level[block]) level[block] = below[i];
      }
      this.#levels.push(level);
      below = level;
    }
  }

  /** Call `visit` with each position in [first, end) whose value is at least `least`, in order. */
  each(first: number, end: number, least: number, visit: (i: number) => void): void {
    let i = first;
    while (i < end) {
      // Skip a whole block that starts here, ends within the range and has no large value.
      let size = 1;
      for (const level of this.#levels) {
        const wider = size * BLOCK;
        if (i % wider !== 0 || i + wider > end || level[i / wider] >= least) break;
        size = wider;
      }
      if (size === 1 && this.values[i] >= least) visit(i);
      i += size;
    }
  }
}

const known = new WeakMap<Float64Array, WideEvents>();

/** Index of a column, created on first use. */
export function wideEvents(values: Float64Array): WideEvents {
  let index = known.get(values);
  if (!index) {
    index = new WideEvents(values);
    known.set(values, index);
  }
  return index;
}
