// Column of lane labels: names, folding, pinning, and its width.

import { h, on } from "../base/dom.ts";
import { memoryCss } from "../render/memory_colours.ts";
import { labelParts } from "./label_parts.ts";
import type { PlacedLane } from "./lanes.ts";

const NARROWEST = 64;
const WIDEST = 420;
/** Default width; must match the style sheet. */
const USUAL = 140;
/** Default width for labels that begin with the name of a process. */
const WIDE = "min(200px, 40%)";
const KEY_STEP = 16;

interface LabelActions {
  fold(key: string): void;
  pin(key: string): void;
  resized(): void;
}

interface Label {
  /** Row currently shown; an unchanged row is not written again. */
  row: PlacedLane | null;
  element: HTMLElement;
  name: HTMLElement;
  scale: HTMLElement;
  pin: HTMLElement;
}

export class LaneLabels {
  readonly element = h("div", { class: "ep-labels" });
  /** Corner beside the ruler. */
  readonly corner = h("div", { class: "ep-corner" });
  readonly #rows = h("div", { role: "group", "aria-label": "Lanes" });
  readonly #sticky = h("div", { class: "ep-label-part" });
  readonly #lanes = h("div", { class: "ep-label-part" });
  readonly #clip = h("div", { class: "ep-clip" }, this.#lanes);
  /** Hint that rows follow below the visible part. */
  readonly #more = h("div", { class: "ep-more" });
  readonly #labels = new Map<string, Label>();
  readonly #grip = h("div", {
    class: "ep-grip",
    role: "separator",
    tabindex: "0",
    "aria-orientation": "vertical",
    "aria-label": "Width of the labels",
    "aria-valuemin": NARROWEST,
    "aria-valuemax": WIDEST,
    "aria-valuenow": USUAL,
  });
  /** Last placement of the parts. */
  #place = "";
  /** Key of the row whose label is the tab stop. */
  #current = "";

  /**
   * `all` are the labels of all lanes, folded ones included; `wide` is whether they begin with the
   * name of a process.
   */
  constructor(
    private readonly actions: LabelActions,
    private readonly all: string[],
    wide: boolean,
  ) {
    if (wide) this.element.style.flexBasis = WIDE;
    this.#rows.append(this.#sticky, this.#clip);
    this.element.append(this.corner, this.#rows, this.#more, this.#grip);
    on(this.#rows, "keydown", (event) => this.#key(event));
    on(this.#rows, "focusin", (event) => {
      const key = keyOf(event.target);
      if (key) this.#reach(key);
    });
    this.#resizing();
  }

  /** Key of the row whose label has the focus. */
  get focused(): string | null {
    const root = this.element.getRootNode() as Document | ShadowRoot;
    return this.#rows.contains(root.activeElement) ? this.#current : null;
  }

  /** Show the labels of the rows in view; `top` is the position of the sticky ones. */
  show(sticky: PlacedLane[], lanes: PlacedLane[], top: number, head: number, scroll: number): void {
    const place = `${top} ${head} ${scroll}`;
    if (place !== this.#place) {
      this.#place = place;
      this.corner.style.height = `${top}px`;
      this.#sticky.style.top = `${top}px`;
      this.#clip.style.top = `${head}px`;
      this.#lanes.style.transform = `translateY(${-scroll}px)`;
    }
    const kept = new Set<string>();
    for (const [rows, part] of [
      [sticky, this.#sticky],
      [lanes, this.#lanes],
    ] as const) {
      rows.forEach((row, i) => {
        kept.add(row.key);
        const { element } = this.#label(row);
        // Leave elements already in place alone, so that they keep the focus.
        if (part.children[i] !== element) part.insertBefore(element, part.children[i] ?? null);
      });
    }
    const focused = this.focused;
    for (const [key, { element }] of this.#labels) {
      if (kept.has(key) || key === focused) continue;
      element.remove();
      this.#labels.delete(key);
    }
    if (!kept.has(this.#current)) this.#reach([...kept][0] ?? "");
  }

  /** Say how many rows follow below the visible part. */
  more(rows: number): void {
    const text = rows ? `${rows} more ${rows === 1 ? "row" : "rows"} ↓` : "";
    if (this.#more.textContent !== text) this.#more.textContent = text;
  }

  /** Show the scale of a counter, such as "0–20". */
  scale(key: string, text: string): void {
    const label = this.#labels.get(key);
    if (label && label.scale.textContent !== text) label.scale.textContent = text;
  }

  #label(row: PlacedLane): Label {
    const { key, folded, pinned } = row;
    const label = this.#labels.get(key) ?? this.#make(row);
    if (label.row === row) return label;
    label.row = row;
    const { element, name, pin } = label;
    element.style.top = `${row.y}px`;
    element.style.height = `${Math.max(row.height, 12)}px`;
    if (folded !== null) name.setAttribute("aria-expanded", String(!folded));
    pin.setAttribute("aria-pressed", String(pinned));
    pin.title = pinned ? "Unpin (P)" : "Pin to the top (P)";
    return label;
  }

  #make({ key, kind, label: text, title, indent, folded, parts }: PlacedLane): Label {
    const foldable = folded !== null;
    const [head, tail] = labelParts(text, this.all);
    const words = [h("span", {}, head), tail];
    const name = foldable
      ? h("button", { type: "button", class: "ep-name ep-fold", tabindex: "-1" }, ...words)
      : h("span", { class: "ep-name" }, ...words);
    on(name, "click", () => foldable && this.actions.fold(key));
    const scale = h("span", { class: "ep-scale" });
    const pin = h("button", {
      type: "button",
      class: "ep-pin",
      tabindex: "-1",
      "aria-label": `Pin ${text}`,
    });
    on(pin, "click", () => this.actions.pin(key));
    const element = h(
      "div",
      {
        class: `ep-label ep-label-${kind}${indent ? " ep-indent" : ""}`,
        title: title.startsWith(text) ? title : `${text}\n${title}`,
        "data-key": key,
      },
      name,
      scale,
      pin,
      parts.length ? partNames(parts) : null,
    );
    const label = { row: null, element, name, scale, pin };
    this.#labels.set(key, label);
    return label;
  }

  /** Make one label the tab stop; the arrow keys move on from there. */
  #reach(key: string): void {
    const set = (at: string, index: string): void => {
      const label = this.#labels.get(at);
      label?.pin.setAttribute("tabindex", index);
      if (label?.name instanceof HTMLButtonElement) label.name.setAttribute("tabindex", index);
    };
    set(this.#current, "-1");
    this.#current = key;
    set(key, "0");
  }

  #key(event: KeyboardEvent): void {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    // Enter and Space press the button; keep them from the timeline's shortcuts.
    if (event.key === "Enter" || event.key === " ") event.stopPropagation();
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const all = [...this.#rows.querySelectorAll<HTMLElement>(".ep-label")];
    const at = all.findIndex((element) => element.dataset.key === this.#current);
    const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
    if (!next) return;
    const onPin = (event.target as HTMLElement).matches(".ep-pin");
    const button = onPin ? null : next.querySelector<HTMLElement>(".ep-fold");
    (button ?? next.querySelector<HTMLElement>(".ep-pin"))?.focus();
  }

  #resizing(): void {
    const grip = this.#grip;
    const set = (width: number): void => {
      const bounded = Math.round(Math.min(Math.max(width, NARROWEST), WIDEST));
      this.element.style.flexBasis = `${bounded}px`;
      grip.setAttribute("aria-valuenow", String(bounded));
      this.actions.resized();
    };
    on(grip, "pointerdown", (event) => {
      grip.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    on(grip, "pointermove", (event) => {
      if (!grip.hasPointerCapture(event.pointerId)) return;
      set(event.clientX - this.element.getBoundingClientRect().left);
    });
    on(grip, "keydown", (event) => {
      const step =
        event.key === "ArrowRight" ? KEY_STEP : event.key === "ArrowLeft" ? -KEY_STEP : 0;
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      set(this.element.offsetWidth + step);
    });
  }
}

function partNames(parts: string[]): HTMLElement {
  const names = parts.map((part) => {
    const swatch = h("i", { class: "ep-swatch" });
    swatch.style.background = memoryCss(part);
    return h("span", {}, swatch, part);
  });
  return h("div", { class: "ep-parts" }, ...names);
}

function keyOf(target: EventTarget | null): string | null {
  const label = target instanceof HTMLElement ? target.closest<HTMLElement>(".ep-label") : null;
  return label?.dataset.key ?? null;
}
