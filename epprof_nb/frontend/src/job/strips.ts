// The strips of a job: a cursor with numbers, and a selection of a time range and ranks.
//
// The picture itself is Python's; without scripts it remains as it is.

import { copyText } from "../base/clipboard.ts";
import { h, on } from "../base/dom.ts";
import type { Range } from "../base/time_scale.ts";
import {
  type Cell,
  cellAt,
  cellText,
  moved,
  type StripsData,
  selectionText,
  timesOf,
} from "./selection.ts";

const HINT = "Point at a strip for its numbers; drag over strips to select a time range.";
/** Bins of a step with the keyboard. */
const STEP = 5;
const PAGE = 60;

function shape(kind: "rect" | "line", css: string): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", kind);
  element.setAttribute("class", css);
  element.style.display = "none";
  return element;
}

function place(element: SVGElement, values: Record<string, number>): void {
  for (const [name, value] of Object.entries(values)) element.setAttribute(name, String(value));
  element.style.display = "";
}

export class Strips {
  readonly #status = h("span", { role: "status" }, HINT);
  readonly #code = h("code");
  readonly #copy = h("button", { type: "button", hidden: true }, "copy");
  readonly #line = shape("line", "epprof-cursor");
  readonly #box = shape("rect", "epprof-selection");
  #cursor: Cell | null = null;
  #anchor: Cell | null = null;
  #dragging = false;

  constructor(
    private readonly svg: SVGSVGElement,
    private readonly data: StripsData,
    /** Called with the time range of each selection that ends, and null if it is cleared. */
    private readonly selected: (range: Range | null) => void,
  ) {
    const picture = h("div", {
      class: "epprof-strips",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "strips by rank",
      "aria-label": svg.getAttribute("aria-label") ?? "Ranks over time",
    });
    svg.replaceWith(picture);
    svg.setAttribute("aria-hidden", "true");
    svg.removeAttribute("role");
    svg.append(this.#box, this.#line);
    const about = h("p", { class: "epprof-about" }, this.#status, " ", this.#code, " ", this.#copy);
    picture.append(svg);
    picture.after(about);
    on(this.#copy, "click", () => void this.#copyCode());
    on(picture, "pointerdown", (event) => this.#press(event, picture));
    on(picture, "pointermove", (event) => this.#move(event));
    on(picture, "pointerup", () => this.#release());
    on(picture, "pointercancel", () => this.#release());
    on(picture, "pointerleave", () => {
      if (!this.#dragging && !this.#anchor) this.#clear();
    });
    on(picture, "keydown", (event) => this.#key(event));
  }

  #cell(event: PointerEvent): Cell {
    const box = this.svg.getBoundingClientRect();
    const scale = this.svg.viewBox.baseVal.width / box.width;
    return cellAt(this.data, (event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
  }

  #press(event: PointerEvent, picture: HTMLElement): void {
    if (event.button !== 0) return;
    picture.setPointerCapture(event.pointerId);
    this.#dragging = true;
    this.#anchor = null;
    this.#cursor = this.#cell(event);
    this.#draw();
  }

  #move(event: PointerEvent): void {
    const cell = this.#cell(event);
    if (this.#dragging) {
      const from = this.#cursor ?? cell;
      // A small movement during a click does not select.
      if (!this.#anchor && Math.abs(cell.bin - from.bin) + Math.abs(cell.row - from.row) < 2)
        return;
      this.#anchor ??= from;
    } else if (this.#anchor) return;
    this.#cursor = cell;
    this.#draw();
  }

  #release(): void {
    if (!this.#dragging) return;
    this.#dragging = false;
    this.#report();
  }

  #key(event: KeyboardEvent): void {
    const steps: Record<string, [rows: number, right: number]> = {
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      ArrowLeft: [0, -STEP],
      ArrowRight: [0, STEP],
      PageUp: [0, -PAGE],
      PageDown: [0, PAGE],
      Home: [0, Number.NEGATIVE_INFINITY],
      End: [0, Number.POSITIVE_INFINITY],
    };
    const step = steps[event.key];
    if (step) {
      const from = this.#cursor ?? { row: 0, bin: 0 };
      if (event.shiftKey) this.#anchor ??= from;
      else this.#anchor = null;
      this.#cursor = this.#cursor ? moved(this.data, from, ...step) : from;
      this.#draw();
      this.#report();
    } else if (event.key === "Escape") {
      this.#clear();
      this.selected(null);
    } else if (event.key === "Enter" && this.#code.textContent) void this.#copyCode();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #report(): void {
    const [one, other] = [this.#anchor, this.#cursor];
    this.selected(one && other ? timesOf(this.data, one, other) : null);
  }

  #clear(): void {
    this.#cursor = this.#anchor = null;
    this.#draw();
  }

  async #copyCode(): Promise<void> {
    const copied = await copyText(
      this.#code.textContent ?? "",
      this.#copy.parentElement as HTMLElement,
    );
    if (copied) this.#copy.textContent = "copied";
  }

  #draw(): void {
    const { data } = this;
    const [cursor, anchor] = [this.#cursor, this.#anchor];
    const width = data.plot / data.busy[0].length;
    this.#line.style.display = this.#box.style.display = "none";
    this.#code.textContent = "";
    this.#copy.hidden = true;
    if (!cursor) {
      this.#status.textContent = HINT;
      return;
    }
    const top = data.top + Math.min(cursor.row, anchor?.row ?? cursor.row) * data.row;
    if (!anchor) {
      const x = data.left + (cursor.bin + 0.5) * width;
      const bottom = data.top + data.labels.length * data.row;
      place(this.#line, { x1: x, x2: x, y1: data.top - 2, y2: bottom });
      place(this.#box, { x: data.left, y: top - 1, width: data.plot, height: data.row - 1 });
      this.#box.classList.toggle("epprof-row", true);
      this.#status.textContent = cellText(data, cursor);
      return;
    }
    const left = data.left + Math.min(cursor.bin, anchor.bin) * width;
    place(this.#box, {
      x: left,
      y: top - 1,
      width: (Math.abs(cursor.bin - anchor.bin) + 1) * width,
      height: (Math.abs(cursor.row - anchor.row) + 1) * data.row - 1,
    });
    this.#box.classList.toggle("epprof-row", false);
    const { text, code } = selectionText(data, anchor, cursor);
    this.#status.textContent = code ? `${text}:` : text;
    this.#code.textContent = code;
    this.#copy.textContent = "copy";
    this.#copy.hidden = !code;
  }
}
