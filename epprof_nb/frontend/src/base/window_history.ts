// History of windows with back and forward, as in a browser.

import type { Range } from "./time_scale.ts";

const MOST = 200;

export class History {
  #windows: Range[];
  #at = 0;

  constructor(first: Range) {
    this.#windows = [first];
  }

  /** Add a window and drop the windows ahead. Adding the current one again has no effect. */
  note(view: Range): void {
    if (same(view, this.#windows[this.#at])) return;
    this.#windows = [...this.#windows.slice(0, this.#at + 1), view].slice(-MOST);
    this.#at = this.#windows.length - 1;
  }

  back(): Range | null {
    return this.#step(-1);
  }

  forward(): Range | null {
    return this.#step(1);
  }

  #step(by: number): Range | null {
    const view = this.#windows[this.#at + by];
    if (!view) return null;
    this.#at += by;
    return view;
  }
}

function same(a: Range, b: Range): boolean {
  return a.start === b.start && a.end === b.end;
}
