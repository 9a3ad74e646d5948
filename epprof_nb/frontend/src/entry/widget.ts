// The live widget: the same viewer, with Python behind it to answer for any window.
//
// It is shown at once, before there is a static output. When that comes, the viewer moves into it,
// in place of the frame there, and Python empties the widget's own output. So what is saved never
// holds a widget, whose model would be gone when the notebook is opened again. When Python closes
// the view, the frame takes its place again. When the static output is cleared, the viewer goes with
// it, and Python is told. Shown anew elsewhere, it leaves where it was.

import { mount } from "../app/viewer.ts";
import { h } from "../base/dom.ts";
import { Channel, type Model } from "../data/channel.ts";
import { LiveSource } from "../data/live_source.ts";
import type { Overview } from "../data/model.ts";
import { Bundle } from "../data/wire_format.ts";
import { followTheme, whenCleared } from "./notebook_host.ts";

declare const VIEWER_CSS: string;

const MAX_HEIGHT = 340;
/** How often the static output is looked for. */
const PLACE_MS = 200;
const PLACE_TIMES = 600;
const SILENT =
  "Python does not answer: it is busy, or its kernel has ended. What is shown stays as it is.";
/** Conversations by mark. What listens in `render` would go with the view: these stay. */
const channels = new Map<string, Channel>();
/** What takes a view off the screen, by mark. */
const shown = new Map<string, () => void>();

function initialize(model: Model): () => void {
  const mark = String(model.get("mark"));
  channels.set(mark, new Channel(model));
  return () => channels.delete(mark);
}

async function render(model: Model, el: HTMLElement): Promise<(() => void) | undefined> {
  const mark = String(model.get("mark"));
  const channel = channels.get(mark);
  if (!channel) return;
  // Neither the notebook's styles nor, by Lumino's own attribute, its one-letter commands
  // reach inside: there, D twice would delete a cell.
  const host = h("div", { class: "epprof-live", "data-lm-suppress-shortcuts": "true" });
  const root = h("div");
  host.attachShadow({ mode: "open" }).append(h("style", {}, VIEWER_CSS), root);
  el.append(host);
  const overview = new Bundle<Overview>(await firstBytes(model, channel));
  const target = String(model.get("place"));
  shown.get(mark)?.();
  const viewer = mount(root, overview, new LiveSource(channel), {
    tab: String(model.get("tab")),
    maxHeight: MAX_HEIGHT,
    greedyWheel: false,
  });
  root.classList.add("ep-live");
  const notice = h("p", { class: "ep-note ep-silent", role: "status" });
  root.append(notice);
  channel.onSilence = (silent) => notice.replaceChildren(silent ? SILENT : "");
  const unfollow = followTheme((theme) => viewer.setTheme(theme));
  let state: "here" | "moved" | "closed" = "here";
  let leave = (): void => {};
  const vanish = (): void => {
    if (state === "closed") return;
    state = "closed";
    unfollow();
    viewer.destroy();
    host.remove();
    leave();
    shown.delete(mark);
  };
  shown.set(mark, vanish);
  const close = (): void => {
    vanish();
    channel.close();
  };
  const end = (): void => {
    close();
    channel.send({ type: "closed" });
  };
  channel.on("close", close);
  let left = Number.POSITIVE_INFINITY;
  const move = (): void => {
    if (state !== "here") return;
    const place = [...document.querySelectorAll("[data-epprof-mount]")]
      .filter((element) => element.getAttribute("data-epprof-mount") === target)
      .at(-1);
    if (place) {
      state = "moved";
      const before = [...place.childNodes];
      place.replaceChildren(host);
      const unwatch = whenCleared(host, end);
      leave = () => {
        unwatch();
        place.replaceChildren(...before);
      };
      channel.send({ type: "mounted" });
    } else if (--left > 0) setTimeout(move, PLACE_MS);
    else end();
  };
  move();
  // The next cell empties the output that brought the view: the static one may still be to come.
  return () => {
    left = PLACE_TIMES;
  };
}

/** What Python sent along with the widget; it is asked for where that has been used up. */
async function firstBytes(model: Model, channel: Channel): Promise<Uint8Array> {
  const sent = model.get("first");
  if (sent instanceof DataView && sent.byteLength > 0) {
    return new Uint8Array(sent.buffer as ArrayBuffer, sent.byteOffset, sent.byteLength);
  }
  return (await channel.request({ type: "first" })).bytes ?? new Uint8Array();
}

export default {
  initialize: ({ model }: { model: Model }) => initialize(model),
  render: ({ model, el }: { model: Model; el: HTMLElement }) => render(model, el),
};
