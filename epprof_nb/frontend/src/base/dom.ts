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

/** Text nodes, with `backticks` turned into code elements. */
export function withCode(text: string): Node[] {
  return text
    .split("`")
    .map((part, i) => (i % 2 ? h("code", {}, part) : document.createTextNode(part)));
}
