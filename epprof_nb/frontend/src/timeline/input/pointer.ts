// What the pointer means on the canvas: overlays are asked first, then the events and the strips.

import type { Range } from "../../base/time_scale.ts";
import { Tip } from "../../base/tooltip.ts";
import type { Viewport } from "../../base/viewport.ts";
import type { EventRef, Fields, Hit } from "../../data/model.ts";
import { refOf } from "../../data/queries.ts";
import { tooltip } from "../../selection/event_details.ts";
import type { Geometry } from "../geometry.ts";
import { hit } from "../hit.ts";
import type { Overlays, PointerAt, Zone } from "../overlays/overlay.ts";
import type { Gestures } from "./gestures.ts";

/** How long the pointer rests on an event before more is asked about it. */
const REST_MS = 90;
/** Half the stretch whose counts the tooltip tells, pixels. */
const AROUND = 2;

export interface Pointed {
  readonly geometry: Geometry;
  readonly viewport: Viewport;
  readonly overlays: Overlays;
  scroll(pixels: number): void;
  select(hit: Hit | null): void;
  /** What a counter says about a stretch. */
  tell(counter: number, stretch: Range): string;
  /** Asks for what is not here of an event; undefined where all is here. */
  readonly describe: ((event: EventRef) => Promise<Fields>) | undefined;
}

export class Pointing implements Gestures {
  readonly tip = new Tip();
  #last: PointerAt | null = null;
  #resting: ReturnType<typeof setTimeout> | undefined;
  /** What was told of the event that the pointer is or was on. */
  #told: { hit: Hit; fields: Fields } | null = null;

  constructor(
    private readonly root: HTMLElement,
    private readonly canvas: HTMLElement,
    private readonly on: Pointed,
  ) {}

  /** Where the pointer is, while it is over the canvas. */
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

  /** A double click goes to the event; beside events it shows all. */
  open(at: PointerAt): void {
    if (at.hit) this.on.viewport.show(extentOf(at.hit));
    else this.on.viewport.fit();
  }

  hover(at: PointerAt): void {
    this.#last = at;
    const { overlays } = this.on;
    this.canvas.classList.toggle("ep-over", at.hit !== null);
    this.canvas.style.cursor = overlays.first((overlay) => overlay.cursor?.(at)) ?? "";
    const content = overlays.first((overlay) => overlay.hover?.(at)) ?? this.#tell(at);
    if (content) this.tip.show(content, at.clientX, at.clientY, this.root);
    else this.tip.hide();
    clearTimeout(this.#resting);
    const { hit } = at;
    if (!hit || same(hit, this.#told?.hit)) return;
    this.#resting = setTimeout(() => void this.#ask(hit), REST_MS);
  }

  leave(): void {
    clearTimeout(this.#resting);
    this.#last = null;
    this.tip.hide();
  }

  /** Has more told of the event under the pointer, and shows it if that still is there. */
  async #ask(hit: Hit): Promise<void> {
    try {
      const fields = await this.on.describe?.(refOf(hit));
      const at = this.#last;
      if (!fields || !at?.hit || !same(at.hit, hit)) return;
      this.#told = { hit, fields };
      this.hover(at);
    } catch {
      // The tooltip says what is here.
    }
  }

  #tell(at: PointerAt): (Node | string)[] | null {
    if (at.hit) {
      return tooltip(at.hit, same(at.hit, this.#told?.hit) ? this.#told?.fields : undefined);
    }
    const { geometry } = this.on;
    const counter = geometry.rowAt(at.y)?.counter ?? null;
    if (counter === null || at.zone === "ruler") return null;
    const stretch = { start: geometry.time(at.x - AROUND), end: geometry.time(at.x + AROUND) };
    return [this.on.tell(counter, stretch)];
  }
}

function same(a: Hit, b: Hit | undefined): boolean {
  return a.set === b?.set && a.event === b.event;
}

export function extentOf({ set, event }: Hit): Range {
  return { start: set.start[event], end: set.start[event] + set.dur[event] };
}
