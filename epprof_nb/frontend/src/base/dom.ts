// Elements without markup: text only ever becomes text, so names from traces stay harmless.

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

/** Text in which `backticks` mark code. */
export function withCode(text: string): Node[] {
  return text
    .split("`")
    .map((part, i) => (i % 2 ? h("code", {}, part) : document.createTextNode(part)));
}
