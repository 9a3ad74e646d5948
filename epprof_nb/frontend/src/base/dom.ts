// Creation of DOM elements without markup. Text stays text, so names from traces cannot inject
// HTML.

type Child = Node | string | null | undefined;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | number | boolean> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

/** Call `run` on each event of a type. */
export function on<K extends keyof HTMLElementEventMap>(
  target: HTMLElement,
  type: K,
  run: (event: HTMLElementEventMap[K]) => void,
  options?: AddEventListenerOptions,
): void {
  target.addEventListener(type, run, options);
}

/** Button with a sign or no text, and a title for screen readers. */
export function signButton(
  sign: string,
  title: string,
  run: () => void,
  attributes: Record<string, string | boolean> = {},
): HTMLButtonElement {
  const button = h("button", { type: "button", title, "aria-label": title, ...attributes }, sign);
  on(button, "click", run);
  return button;
}

/** Text nodes, with `backticks` turned into code elements. */
export function withCode(text: string): Node[] {
  return text
    .split("`")
    .map((part, i) => (i % 2 ? h("code", {}, part) : document.createTextNode(part)));
}

/** 2D context of a canvas; throws an Error with a message for users if there is none. */
export function context2d(
  canvas: HTMLCanvasElement,
  settings?: CanvasRenderingContext2DSettings,
): CanvasRenderingContext2D {
  const context = canvas.getContext("2d", settings);
  if (!context)
    throw new Error(
      "The timeline cannot be drawn: this browser provides no 2D canvas. Free memory or close " +
        "other pages, then open this one again.",
    );
  return context;
}
