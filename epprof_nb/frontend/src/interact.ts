// Pointer, wheel and keys of the timeline, turned into what they mean.

export interface Gestures {
  zoom(factor: number, x: number): void;
  pan(pixels: number): void;
  scroll(pixels: number): void;
  fit(): void;
  hover(x: number, y: number, clientX: number, clientY: number): void;
  leave(): void;
  click(x: number, y: number): void;
  clear(): void;
  width(): number;
}

const DRAG_PIXELS = 4;
const KEY_ZOOM = 1.35;
const KEY_PAN = 0.12;

/**
 * Listens on `root` (keys) and `canvas` (pointer).
 *
 * A wheel over the timeline belongs to the page until the timeline has the focus, so that a
 * notebook scrolls as ever; with Ctrl or Cmd, or `greedy`, it always zooms.
 */
export function listen(
  root: HTMLElement,
  canvas: HTMLElement,
  act: Gestures,
  greedy: boolean,
): void {
  let drag: { x: number; y: number; moved: boolean } | null = null;

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
    { passive: false },
  );

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    drag = { x: event.clientX, y: event.clientY, moved: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) {
      act.hover(event.offsetX, event.offsetY, event.clientX, event.clientY);
      return;
    }
    const dx = event.clientX - drag.x;
    const dy = event.clientY - drag.y;
    if (!drag.moved && Math.hypot(dx, dy) < DRAG_PIXELS) return;
    drag = { x: event.clientX, y: event.clientY, moved: true };
    canvas.classList.add("ep-dragging");
    act.leave();
    act.pan(-dx);
    act.scroll(-dy);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) act.click(event.offsetX, event.offsetY);
    drag = null;
    canvas.classList.remove("ep-dragging");
  });
  canvas.addEventListener("pointercancel", () => {
    drag = null;
    canvas.classList.remove("ep-dragging");
  });
  canvas.addEventListener("pointerleave", () => act.leave());
  canvas.addEventListener("dblclick", () => act.fit());

  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const middle = act.width() / 2;
    const moves: Record<string, () => void> = {
      w: () => act.zoom(1 / KEY_ZOOM, middle),
      s: () => act.zoom(KEY_ZOOM, middle),
      a: () => act.pan(-act.width() * KEY_PAN),
      d: () => act.pan(act.width() * KEY_PAN),
      "+": () => act.zoom(1 / KEY_ZOOM, middle),
      "-": () => act.zoom(KEY_ZOOM, middle),
      arrowleft: () => act.pan(-act.width() * KEY_PAN),
      arrowright: () => act.pan(act.width() * KEY_PAN),
      arrowup: () => act.scroll(-40),
      arrowdown: () => act.scroll(40),
      "0": () => act.fit(),
      f: () => act.fit(),
      escape: () => act.clear(),
    };
    const move = moves[event.key.toLowerCase()];
    if (!move) return;
    move();
    event.preventDefault();
    // A notebook has meanings of its own for bare letters.
    event.stopPropagation();
  });
}
