// How many WebGL contexts a page holds. Browsers allow about 16 and then drop the oldest, whoever
// uses it; the notebook and other outputs want theirs too.

export interface Holder {
  /** Whether what it draws can be seen now. */
  seen(): boolean;
  /** Must let go of its context. */
  release(): void;
}

export class Contexts {
  /** The one asked for longest ago first. */
  #holders: Holder[] = [];

  constructor(private readonly most: number) {}

  /** Whether `holder` may have a context: one that nobody sees makes room, none that is seen. */
  take(holder: Holder): boolean {
    if (this.#holders.includes(holder)) return true;
    if (this.#holders.length >= this.most) {
      const unseen = this.#holders.find((other) => !other.seen());
      if (!unseen) return false;
      this.give(unseen);
      unseen.release();
    }
    this.#holders.push(holder);
    return true;
  }

  /** Tells that `holder` has no context any more. */
  give(holder: Holder): void {
    this.#holders = this.#holders.filter((other) => other !== holder);
  }
}

const MOST = 8;
const KEY = Symbol.for("epprof_nb.contexts.1");

/** The page's count: a widget loads this module once more for itself, but the page is one. */
export function contexts(): Contexts {
  const page = globalThis as { [KEY]?: Contexts };
  page[KEY] ??= new Contexts(MOST);
  return page[KEY];
}
