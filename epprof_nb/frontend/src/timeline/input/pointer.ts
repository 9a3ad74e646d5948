// Pointer handling on the canvas: overlays first, then events and counters.

import type { Range } from "../../base/time_scale.ts";
import { Tooltip } from "../../base/tooltip.ts";
import type { Viewport } from "../../base/viewport.ts";
import type { Fields, Hit } from "../../data/events.ts";
import { refOf } from "../../data/selection_queries.ts";
import type { EventRef } from "../../data/wire_types.ts";
import { tooltip } from "../../selection/event_tooltip.ts";
import type { Geometry } from "../geometry.ts";
import { hit } from "../hit.ts";
import type { Overlays, PointerAt, Zone } from "../overlays/overlay.ts";
import type { Gestures } from "./wheel_and_drag.ts";

/** Time the pointer must rest on an event before its fields are requested. */
const REST_MS = 90;
/** Half the width in pixels of the range a counter's tooltip covers. */
const AROUND = 2;

interface PointerTargets {
  readonly geometry: Geometry;
  readonly viewport: Viewport;
  readonly overlays: Overlays;
  scroll(pixels: number): void;
  select(hit: Hit | null): void;
  /** Tooltip of a counter for a time range. */
  describeCounter(counter: number, range: Range): string | (Node | string)[];
  /** Request the fields of an event; undefined if all of them are loaded. */
  readonly describe: ((event: EventRef) => Promise<Fields>) | undefined;
}

export class PointerHandler implements Gestures {
  readonly tip = new Tooltip();
  #last: PointerAt | null = null;
  #resting: ReturnType<typeof setTimeout> | undefined;
  /** Fields of the event that the pointer is or was on. */
  #described: { hit: Hit; fields: Fields } | null = null;

  constructor(
    private readonly root: HTMLElement,
    private readonly canvas: HTMLElement,
    private readonly on: PointerTargets,
  ) {}

  /** Pointer position while it is over the canvas. */
  get last(): PointerAt | null {
    return this.#last;
  }

  zoom(factor: number, x: number): void {
    this.on.viewport.zoom(factor, x);
  }

  pan(pixels: number): void {
    this.on.viewport.pan(pixels);
  }

  scroll(pixels: number): void {
    this.on.scroll(pixels);
  }

  at(event: MouseEvent): PointerAt {
    const { geometry } = this.on;
    const { offsetX: x, offsetY: y, clientX, clientY } = event;
    const zone: Zone = y < geometry.ruler ? "ruler" : y < geometry.head ? "tracks" : "lanes";
    let found: { hit: Hit | null } | undefined;
    return {
      x,
      y,
      clientX,
      clientY,
      time: geometry.time(x),
      zone,
      shift: event.shiftKey,
      alt: event.altKey,
      ctrl: event.ctrlKey || event.metaKey,
      get hit() {
        found ??= { hit: hit(geometry.slicesAt(y), geometry.view, geometry.width, x) };
        return found.hit;
      },
    };
  }

  press(at: PointerAt): ReturnType<Gestures["press"]> {
    return this.on.overlays.first((overlay) => overlay.press?.(at));
  }

  click(at: PointerAt): void {
    if (!this.on.overlays.first((overlay) => overlay.click?.(at))) this.on.select(at.hit);
  }

  /** Zoom to the double-clicked event; outside events, show all. */
  open(at: PointerAt): void {
    if (at.hit) this.on.viewport.show(extentOf(at.hit));
    else this.on.viewport.fit();
  }

  hover(at: PointerAt): void {
    this.#last = at;
    const { overlays } = this.on;
    this.canvas.classList.toggle("ep-over", at.hit !== null);
    this.canvas.style.cursor = overlays.first((overlay) => overlay.cursor?.(at)) ?? "";
    const content = overlays.first((overlay) => overlay.hover?.(at)) ?? this.#tooltip(at);
    if (content) this.tip.show(content, at.clientX, at.clientY, this.root);
    else this.tip.hide();
    clearTimeout(this.#resting);
    const { hit } = at;
    if (!hit || same(hit, this.#described?.hit)) return;
    this.#resting = setTimeout(() => void this.#loadFields(hit), REST_MS);
  }

  leave(): void {
    clearTimeout(this.#resting);
    this.#last = null;
    this.tip.hide();
  }

  /** Load the fields of the event under the pointer, and show them if it is still there. */
  async #loadFields(hit: Hit): Promise<void> {
    try {
      const fields = await this.on.describe?.(refOf(hit));
      const at = this.#last;
      if (!fields || !at?.hit || !same(at.hit, hit)) return;
      this.#described = { hit, fields };
      this.hover(at);
    } catch {
      // The tooltip shows the fields already loaded.
    }
  }

  #tooltip(at: PointerAt): (Node | string)[] | null {
    if (at.hit) {
      return tooltip(
        at.hit,
        same(at.hit, this.#described?.hit) ? this.#described?.fields : undefined,
      );
    }
    const { geometry } = this.on;
    const counter = geometry.rowAt(at.y)?.counter ?? null;
    if (counter === null || at.zone === "ruler") return null;
    const range = { start: geometry.time(at.x - AROUND), end: geometry.time(at.x + AROUND) };
    return [this.on.describeCounter(counter, range)].flat();
  }
}

function same(a: Hit, b: Hit | undefined): boolean {
  return a.set === b?.set && a.event === b.event;
}

export function extentOf({ set, event }: Hit): Range {
  return { start: set.start[event], end: set.start[event] + set.dur[event] };
}
