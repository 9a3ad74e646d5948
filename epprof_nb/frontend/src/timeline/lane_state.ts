// What the reader has folded away and pinned to the top, by the rows' keys.

import type { Lane } from "../data/model.ts";

export class Arrangement {
  readonly #folded: Set<string>;
  readonly #pinned = new Set<string>();

  constructor(
    lanes: Lane[],
    private readonly changed: () => void,
  ) {
    // API calls are many and small: a strip of them says enough until one asks.
    this.#folded = new Set(lanes.flatMap(({ kind }, i) => (kind === "api" ? [`lane:${i}`] : [])));
  }

  get folded(): ReadonlySet<string> {
    return this.#folded;
  }

  get pinned(): ReadonlySet<string> {
    return this.#pinned;
  }

  toggleFold(key: string): void {
    if (!this.#folded.delete(key)) this.#folded.add(key);
    this.changed();
  }

  togglePin(key: string): void {
    if (!this.#pinned.delete(key)) this.#pinned.add(key);
    this.changed();
  }

  /** Folds all of `keys`; unfolds them where they are all folded. */
  toggleAll(keys: string[]): void {
    const every = keys.every((key) => this.#folded.has(key));
    for (const key of keys) {
      if (every) this.#folded.delete(key);
      else this.#folded.add(key);
    }
    this.changed();
  }
}
