// Which events of a window are wide enough for text, without looking at each of them.

const BLOCK = 32;

/** Finds values of at least some size in a range by the largest value of each block, and of each
 * block of blocks. */
export class Wide {
  /** Largest value of each block; `levels[1]` of each block of `levels[0]`, and so on. */
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

  /** Calls `found` with each position in [first, end) whose value is at least `least`, ascending. */
  each(first: number, end: number, least: number, found: (i: number) => void): void {
    let i = first;
    while (i < end) {
      // Climb while a whole block starts here, ends within the range and holds nothing.
      let size = 1;
      for (const level of this.#levels) {
        const wider = size * BLOCK;
        if (i % wider !== 0 || i + wider > end || level[i / wider] >= least) break;
        size = wider;
      }
      if (size === 1 && this.values[i] >= least) found(i);
      i += size;
    }
  }
}

const known = new WeakMap<Float64Array, Wide>();

/** The index of a column, made when first asked for. */
export function wide(values: Float64Array): Wide {
  let index = known.get(values);
  if (!index) {
    index = new Wide(values);
    known.set(values, index);
  }
  return index;
}
