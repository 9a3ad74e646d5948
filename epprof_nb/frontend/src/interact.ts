// Pointer, wheel and keys of the timeline, turned into what they mean.

import { isTyping, type Keys } from "./keys.ts";
import type { Drag, PointerAt } from "./overlay.ts";

export interface Gestures {
  zoom(factor: number, x: number): void;
  pan(pixels: number): void;
  scroll(pixels: number): void;
  /** What lies under the pointer. */
  at(event: PointerEvent): PointerAt;
  /** The drag that a press begins, where an overlay wants it. */
  press(at: PointerAt): Drag | null;
  hover(at: PointerAt): void;
  leave(): void;
  click(at: PointerAt): void;
  fit(): void;
}

const DRAG_PIXELS = 4;

/**
 * Listens on `root` (keys) and `canvas` (pointer) until `signal` is aborted.
 *
 * A wheel over the timeline belongs to the page until the timeline has the focus, so that a
 * notebook scrolls as ever; with Ctrl or Cmd, or `greedy`, it always zooms.
 */
export function listen(
  root: HTMLElement,
  canvas: HTMLElement,
  act: Gestures,
  keys: Keys,
  greedy: boolean,
  signal: AbortSignal,
): void {
  let drag: { x: number; y: number; moved: boolean; taken: Drag | null } | null = null;

  canvas.addEventListener(
    "wheel",
    (event) => {
      const focused = root.matches(":focus-within");
      if (event.shiftKey || !(greedy || focused || event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) act.pan(event.deltaX);
      else {
        const pixels = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
        act.zoom(Math.exp(Math.max(-120, Math.min(120, pixels)) * 0.0035), event.offsetX);
      }
    },
    { passive: false, signal },
  );

  const stop = (): void => {
    drag = null;
    canvas.classList.remove("ep-dragging");
  };
  canvas.addEventListener(
    "pointerdown",
    (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      const taken = act.press(act.at(event));
      drag = { x: event.clientX, y: event.clientY, moved: false, taken };
    },
    { signal },
  );
  canvas.addEventListener(
    "pointermove",
    (event) => {
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
  canvas.addEventListener(
    "pointerup",
    (event) => {
      if (!drag) return;
      const { taken, moved } = drag;
      stop();
      if (taken) taken.end(act.at(event), moved);
      else if (!moved) act.click(act.at(event));
    },
    { signal },
  );
  const cancel = (): void => {
    drag?.taken?.cancel();
    stop();
  };
  canvas.addEventListener("pointercancel", cancel, { signal });
  canvas.addEventListener("pointerleave", () => act.leave(), { signal });
  canvas.addEventListener("dblclick", () => act.fit(), { signal });

  root.addEventListener(
    "keydown",
    (event) => {
      if (isTyping(event)) return;
      if (event.key === "Escape" && drag) cancel();
      else if (!keys.press(event)) return;
      event.preventDefault();
      // A notebook has meanings of its own for bare letters.
      event.stopPropagation();
    },
    { signal },
  );
}
