// The live widget: the same viewer, with Python behind it to answer for any window.
//
// The view that the notebook shows is given up at once: its content moves into the static output
// above it, in place of the frame there, and Python empties the widget's own output. So what is
// saved never holds a widget, whose model would be gone when the notebook is opened again.

import { Bundle, inflate } from "./decode.ts";
import { h } from "./dom.ts";
import { Live } from "./live.ts";
import type { Overview } from "./model.ts";
import { type Model, Talk } from "./talk.ts";
import type { Theme } from "./theme.ts";
import { mount, type Viewer } from "./viewer.ts";

declare const VIEWER_CSS: string;

const MAX_HEIGHT = 340;
/** Conversations by mark. What listens in `render` would go with the view: these stay. */
const talks = new Map<string, Talk>();

function initialize(model: Model): () => void {
  const mark = String(model.get("mark"));
  talks.set(mark, new Talk(model));
  return () => talks.delete(mark);
}

function pageTheme(): Theme {
  const light = document.body.dataset.jpThemeLight;
  if (light) return light === "false" ? "dark" : "light";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function follow(viewer: Viewer): void {
  const apply = (): void => viewer.setTheme(pageTheme());
  new MutationObserver(apply).observe(document.body, { attributeFilter: ["data-jp-theme-light"] });
  apply();
}

async function render(model: Model, el: HTMLElement): Promise<void> {
  const mark = String(model.get("mark"));
  const talking = talks.get(mark);
  if (!talking) return;
  const { bytes } = await talking.ask({ type: "overview" });
  if (!bytes) return;
  // Neither the notebook's styles nor, by Lumino's own attribute, its one-letter commands
  // reach inside: there, D twice would delete a cell.
  const host = h("div", { class: "epprof-live", "data-lm-suppress-shortcuts": "true" });
  const root = h("div");
  host.attachShadow({ mode: "open" }).append(h("style", {}, VIEWER_CSS), root);
  const overview = new Bundle<Overview>(await inflate(bytes));
  const viewer = mount(root, overview, new Live(talking), {
    tab: String(model.get("tab")),
    maxHeight: MAX_HEIGHT,
    greedyWheel: false,
  });
  root.classList.add("ep-live");
  follow(viewer);
  const place = [...document.querySelectorAll("[data-epprof-mount]")]
    .filter((element) => element.getAttribute("data-epprof-mount") === mark)
    .at(-1);
  if (place) {
    place.replaceChildren(host);
    talking.tell({ type: "mounted" });
  } else el.append(host);
}

export default {
  initialize: ({ model }: { model: Model }) => initialize(model),
  render: ({ model, el }: { model: Model; el: HTMLElement }) => render(model, el),
};
