// Repetition of commands while their keys are held down.

/** Time after which a press counts as held. */
const TAP_MS = 170;
/** Longest step, so that a suspended tab does not jump. */
const LONGEST_MS = 60;

export class KeyRepeat {
  readonly #held = new Map<string, { since: number; act: (ms: number) => void }>();
  #frame = 0;
  #last = 0;

  /** Call `act` every frame with the milliseconds elapsed, until `stop`. */
  start(key: string, act: (ms: number) => void): void {
    const now = performance.now();
    this.#held.set(key, { since: now, act });
    if (this.#frame) return;
    this.#last = now;
    this.#frame = requestAnimationFrame((time) => this.#step(time));
  }

  stop(key: string): void {
    this.#held.delete(key);
  }

  stopAll(): void {
    this.#held.clear();
  }

  #step(now: number): void {
    const ms = Math.min(Math.max(now - this.#last, 0), LONGEST_MS);
    this.#last = now;
    for (const { since, act } of this.#held.values()) if (now - since > TAP_MS) act(ms);
    this.#frame = this.#held.size ? requestAnimationFrame((time) => this.#step(time)) : 0;
  }
}
