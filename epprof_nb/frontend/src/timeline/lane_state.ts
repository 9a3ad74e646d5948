// Folded and pinned rows, by row key.

import type { Lane } from "../data/wire_types.ts";

/** Key of the row that folds all but the first few threads. */
export const OTHER_THREADS = "threads";

export class LaneState {
  readonly #folded: Set<string>;
  readonly #pinned = new Set<string>();

  constructor(
    lanes: Lane[],
    private readonly onChange: () => void,
  ) {
    // API calls are many and short, so their lanes start folded.
    const calls = lanes.flatMap(({ kind }, i) => (kind === "api" ? [`lane:${i}`] : []));
    this.#folded = new Set([...calls, OTHER_THREADS]);
  }

  get folded(): ReadonlySet<string> {
    return this.#folded;
  }

  get pinned(): ReadonlySet<string> {
    return this.#pinned;
  }

  toggleFold(key: string): void {
    if (!this.#folded.delete(key)) this.#folded.add(key);
    this.onChange();
  }

  togglePin(key: string): void {
    if (!this.#pinned.delete(key)) this.#pinned.add(key);
    this.onChange();
  }

  /** Fold all of `keys`, or unfold them if all are folded. */
  toggleAll(keys: string[]): void {
    const every = keys.every((key) => this.#folded.has(key));
    for (const key of keys) {
      if (every) this.#folded.delete(key);
      else this.#folded.add(key);
    }
    this.onChange();
  }
}
