// Interface for modules that draw on the timeline and take part in its gestures.

import type { Hit } from "../../data/events.ts";
import type { Renderer } from "../../render/renderer.ts";
import type { Geometry } from "../geometry.ts";

/** Zones of the canvas from top to bottom. */
export type Zone = "ruler" | "tracks" | "lanes";

/** Pointer position in pixels from the canvas' upper left corner, and what lies there. */
export interface PointerAt {
  x: number;
  y: number;
  clientX: number;
  clientY: number;
  /** Time under the pointer in ns; may lie outside the window during a drag. */
  time: number;
  zone: Zone;
  shift: boolean;
  alt: boolean;
  /** Ctrl, or Cmd on a Mac. */
  ctrl: boolean;
  /** Event under the pointer, computed on first access. */
  readonly hit: Hit | null;
}

/** Drag handled by an overlay. */
export interface Drag {
  move(at: PointerAt): void;
  /** The button was released; `moved` distinguishes a drag from a click. */
  end(at: PointerAt, moved: boolean): void;
  /** Cancelled by Escape or by the browser: undo the drag. */
  cancel(): void;
}

/**
 * Layer on top of the lanes. All parts are optional; if several overlays answer a press or a click,
 * the one added last wins.
 */
export interface Overlay {
  /** Draw below the events, in every frame. */
  under?(renderer: Renderer, geometry: Geometry): void;
  /** Parts of the ruler, in pixels, that the overlay labels itself. */
  reserved?(geometry: Geometry): [left: number, right: number][];
  /** Draw above the events, in every frame. */
  draw?(renderer: Renderer, geometry: Geometry): void;
  /** Handle a press: return a drag to take it, or null to leave it to panning. */
  press?(at: PointerAt): Drag | null;
  /** Handle a click without a drag. Returns whether it was handled. */
  click?(at: PointerAt): boolean;
  /** CSS cursor at a position; null leaves it to others. */
  cursor?(at: PointerAt): string | null;
  /** Tooltip at a position; null leaves it to others and to the event. */
  hover?(at: PointerAt): (Node | string)[] | null;
}

/** List of overlays in drawing order. */
export class Overlays {
  readonly #all: Overlay[] = [];

  /** Add an overlay on top. Returns a function that removes it. */
  add(overlay: Overlay): () => void {
    this.#all.push(overlay);
    return () => this.#all.splice(this.#all.indexOf(overlay), 1);
  }

  get all(): readonly Overlay[] {
    return this.#all;
  }

  /** Answer of the topmost overlay that has one. */
  first<T>(ask: (overlay: Overlay) => T | null | undefined): T | null {
    for (const overlay of [...this.#all].reverse()) {
      const answer = ask(overlay);
      if (answer) return answer;
    }
    return null;
  }
}
