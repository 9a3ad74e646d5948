// Asks for the events of the window once it stands still, where more are to be had.

import type { Events } from "./model.ts";
import type { Range } from "./scale.ts";
import type { Supply } from "./supply.ts";

const SETTLE_MS = 140;

export class Loader {
  #settle = 0;
  #request = 0;

  constructor(
    private readonly supply: Supply,
    private readonly loaded: (events: Events) => void,
  ) {}

  want(view: Range, width: number): void {
    clearTimeout(this.#settle);
    this.#settle = window.setTimeout(() => void this.#ask(view, width), SETTLE_MS);
  }

  destroy(): void {
    clearTimeout(this.#settle);
    this.#request = -1;
  }

  async #ask(view: Range, width: number): Promise<void> {
    const number = ++this.#request;
    const events = await this.supply.window({ view, width });
    // A later window may have been asked for meanwhile.
    if (events && number === this.#request) this.loaded(events);
  }
}
