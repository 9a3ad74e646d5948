// Translation of pointer, wheel and key events into gestures.

import { on } from "../../base/dom.ts";
import type { Drag, PointerAt } from "../overlays/overlay.ts";
import { Pinch } from "./pinch.ts";
import { isTyping, type Shortcuts } from "./shortcut_registry.ts";

export interface Gestures {
  zoom(factor: number, x: number): void;
  pan(pixels: number): void;
  scroll(pixels: number): void;
  /** Pointer position with what lies under it. */
  at(event: MouseEvent): PointerAt;
  /** Drag started by a press, if an overlay takes it. */
  press(at: PointerAt): Drag | null;
  hover(at: PointerAt): void;
  leave(): void;
  click(at: PointerAt): void;
  /** A double click. */
  open(at: PointerAt): void;
}

const DRAG_PIXELS = 4;
/** Zoom per wheel step; a trackpad pinch arrives as a wheel event with Ctrl, in small steps. */
const WHEEL = { speed: 0.0035, most: 120 };
const PINCH = { speed: 0.01, most: 50 };
const LINE_PIXELS = 16;

/**
 * Listen on `root` (keys) and `canvas` (pointer) until `signal` is aborted.
 *
 * The wheel scrolls the page until the timeline has the focus, so that a notebook scrolls as usual;
 * with Ctrl or Cmd, or `greedy`, it always zooms.
 */
export function listen(
  root: HTMLElement,
  canvas: HTMLElement,
  act: Gestures,
  keys: Shortcuts,
  greedy: boolean,
  signal: AbortSignal,
): void {
  const pinch = new Pinch();
  let drag: { x: number; y: number; moved: boolean; taken: Drag | null } | null = null;

  on(
    canvas,
    "wheel",
    (event) => {
      const focused = root.matches(":focus-within");
      const zooms = event.ctrlKey || event.metaKey;
      if (!(greedy || focused || zooms)) return;
      event.preventDefault();
      const unit = event.deltaMode === 1 ? LINE_PIXELS : 1;
      const dx = event.deltaX * unit;
      const dy = event.deltaY * unit;
      if (event.shiftKey) act.pan(dx || dy);
      else if (Math.abs(dx) > Math.abs(dy) && !zooms) act.pan(dx);
      else {
        const { speed, most } = zooms ? PINCH : WHEEL;
        act.zoom(Math.exp(Math.max(-most, Math.min(most, dy)) * speed), event.offsetX);
      }
    },
    { passive: false, signal },
  );

  const stop = (): void => {
    drag = null;
    canvas.classList.remove("ep-dragging");
  };
  const cancel = (): void => {
    drag?.taken?.cancel();
    stop();
  };
  on(
    canvas,
    "pointerdown",
    (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      if (event.pointerType === "touch") pinch.down(event.pointerId, event.offsetX);
      if (pinch.active) {
        cancel();
        return;
      }
      const taken = act.press(act.at(event));
      drag = { x: event.clientX, y: event.clientY, moved: false, taken };
    },
    { signal },
  );
  on(
    canvas,
    "pointermove",
    (event) => {
      const pinched = pinch.move(event.pointerId, event.offsetX);
      if (pinched) {
        act.pan(-pinched.moved);
        act.zoom(pinched.factor, pinched.x);
        return;
      }
      if (!drag) {
        act.hover(act.at(event));
        return;
      }
      const dx = event.clientX - drag.x;
      const dy = event.clientY - drag.y;
      if (!drag.moved && Math.hypot(dx, dy) < DRAG_PIXELS) return;
      drag = { ...drag, x: event.clientX, y: event.clientY, moved: true };
      act.leave();
      if (drag.taken) {
        drag.taken.move(act.at(event));
        return;
      }
      canvas.classList.add("ep-dragging");
      act.pan(-dx);
      act.scroll(-dy);
    },
    { signal },
  );
  on(
    canvas,
    "pointerup",
    (event) => {
      pinch.up(event.pointerId);
      if (!drag) return;
      const { taken, moved } = drag;
      stop();
      if (taken) taken.end(act.at(event), moved);
      else if (!moved) act.click(act.at(event));
    },
    { signal },
  );
  on(
    canvas,
    "pointercancel",
    (event) => {
      pinch.up(event.pointerId);
      cancel();
    },
    { signal },
  );
  on(canvas, "pointerleave", () => act.leave(), { signal });
  on(canvas, "dblclick", (event) => act.open(act.at(event)), { signal });

  on(
    root,
    "keydown",
    (event) => {
      if (isTyping(event)) return;
      if (event.key === "Escape" && drag?.taken) cancel();
      else if (!keys.press(event)) return;
      event.preventDefault();
      // Notebooks have shortcuts of their own on plain letters.
      event.stopPropagation();
    },
    { signal },
  );
  on(root, "keyup", (event) => keys.release(event), { signal });
  on(root, "focusout", () => keys.releaseAll(), { signal });
}
