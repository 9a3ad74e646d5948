// How other modules draw on the timeline and take part in its gestures.

import type { Hit } from "../../data/model.ts";
import type { Renderer } from "../../render/renderer.ts";
import type { Geometry } from "../geometry.ts";

/** Where on the canvas something lies. `ruler` is on top, then `tracks`, then `lanes`. */
export type Zone = "ruler" | "tracks" | "lanes";

/** The pointer on the canvas, in pixels from its upper left corner, and what is there. */
export interface PointerAt {
  x: number;
  y: number;
  clientX: number;
  clientY: number;
  /** Time under the pointer, ns; not held within the window while dragging beyond the edge. */
  time: number;
  zone: Zone;
  shift: boolean;
  alt: boolean;
  /** Ctrl, or Cmd on a Mac. */
  ctrl: boolean;
  /** The event there, found when first asked for. */
  readonly hit: Hit | null;
}

/** A drag that an overlay has taken for itself. */
export interface Drag {
  move(at: PointerAt): void;
  /** The button was let go; `moved` tells a drag from a click. */
  end(at: PointerAt, moved: boolean): void;
  /** Escape, or the browser took the pointer away: as if it had never begun. */
  cancel(): void;
}

/**
 * Something drawn on top of the lanes. Every part is optional; of several overlays that answer a
 * press or a click the one added last wins.
 */
export interface Overlay {
  /** Draws below the events, in every frame. */
  under?(renderer: Renderer, geometry: Geometry): void;
  /** Draws above the events, in every frame. */
  draw?(renderer: Renderer, geometry: Geometry): void;
  /** A button went down: take the drag by returning it, or leave it (null) to panning. */
  press?(at: PointerAt): Drag | null;
  /** A click without a drag; true where it was meant for this overlay. */
  click?(at: PointerAt): boolean;
  /** The pointer's look there, as CSS names it; null leaves it to others. */
  cursor?(at: PointerAt): string | null;
  /** The tooltip for the place under the pointer; null leaves it to others and to the event. */
  hover?(at: PointerAt): (Node | string)[] | null;
}

/** The overlays there are, in the order in which they are drawn. */
export class Overlays {
  readonly #all: Overlay[] = [];

  /** Adds one on top; the result takes it away. */
  add(overlay: Overlay): () => void {
    this.#all.push(overlay);
    return () => this.#all.splice(this.#all.indexOf(overlay), 1);
  }

  get all(): readonly Overlay[] {
    return this.#all;
  }

  /** What the topmost overlay that has an answer answers. */
  first<T>(ask: (overlay: Overlay) => T | null | undefined): T | null {
    for (const overlay of [...this.#all].reverse()) {
      const answer = ask(overlay);
      if (answer) return answer;
    }
    return null;
  }
}
