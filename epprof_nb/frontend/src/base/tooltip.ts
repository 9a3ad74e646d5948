// Tooltip element and its placement.

import { h } from "./dom.ts";

export class Tooltip {
  readonly element = h("div", { class: "ep-tip", role: "tooltip", hidden: true });

  hide(): void {
    this.element.hidden = true;
  }

  /** Show `content` beside the pointer, inside `root` and the containers that clip it. */
  show(content: (Node | string)[], clientX: number, clientY: number, root: HTMLElement): void {
    this.element.replaceChildren(...content);
    this.element.hidden = false;
    const box = root.getBoundingClientRect();
    const tip = this.element.getBoundingClientRect();
    const left = Math.max(Math.min(clientX - box.left + 14, box.width - tip.width - 6), 4);
    // The viewer's container may clip: place it below the pointer, else above, else at the lower
    // edge.
    const viewer = root.closest(".ep-viewer")?.getBoundingClientRect() ?? box;
    const bottom = Math.min(viewer.bottom, window.innerHeight) - 4;
    const above = clientY - tip.height - 12;
    const fits = clientY + 16 + tip.height <= bottom;
    const top = fits ? clientY + 16 : above >= viewer.top ? above : bottom - tip.height;
    this.element.style.left = `${left}px`;
    this.element.style.top = `${top - box.top}px`;
  }
}
