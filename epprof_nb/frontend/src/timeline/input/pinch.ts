// Two-finger gestures on the canvas.

interface Finger {
  x: number;
}

interface PinchStep {
  /** Factor for the window's length: below 1 when the fingers move apart. */
  factor: number;
  /** Middle between the fingers, and its movement, in pixels. */
  x: number;
  moved: number;
}

/** Fingers closer than this do not zoom. */
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

  /** Handle the movement of a finger; null unless two are down. */
  move(id: number, x: number): PinchStep | null {
    const finger = this.#fingers.get(id);
    if (!finger) return null;
    const before = this.#gap();
    finger.x = x;
    const after = this.#gap();
    if (!before || !after) return null;
    return {
      factor: before.apart > NEAREST && after.apart > NEAREST ? before.apart / after.apart : 1,
      x: after.middle,
      moved: after.middle - before.middle,
    };
  }

  #gap(): { apart: number; middle: number } | null {
    const [a, b] = this.#fingers.values();
    return a && b ? { apart: Math.abs(a.x - b.x), middle: (a.x + b.x) / 2 } : null;
  }
}
