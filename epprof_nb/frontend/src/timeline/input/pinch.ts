// Two fingers on the canvas: what they do to the window.

interface Finger {
  x: number;
}

export interface Pinched {
  /** Factor of the window's length: below 1 where the fingers part. */
  factor: number;
  /** Middle between the fingers, and by how much it has moved, pixels. */
  x: number;
  moved: number;
}

/** Fingers nearer than this tell no factor. */
const NEAREST = 12;

export class Pinch {
  readonly #fingers = new Map<number, Finger>();

  get active(): boolean {
    return this.#fingers.size >= 2;
  }

  down(id: number, x: number): void {
    this.#fingers.set(id, { x });
  }

  up(id: number): void {
    this.#fingers.delete(id);
  }

  /** A finger has moved; null unless two are down. */
  move(id: number, x: number): Pinched | null {
    const finger = this.#fingers.get(id);
    if (!finger) return null;
    const before = this.#spread();
    finger.x = x;
    const after = this.#spread();
    if (!before || !after) return null;
    return {
      factor: before.apart > NEAREST && after.apart > NEAREST ? before.apart / after.apart : 1,
      x: after.middle,
      moved: after.middle - before.middle,
    };
  }

  #spread(): { apart: number; middle: number } | null {
    const [a, b] = this.#fingers.values();
    return a && b ? { apart: Math.abs(a.x - b.x), middle: (a.x + b.x) / 2 } : null;
  }
}
