// Entry point of the live widget: the same viewer, with Python as its data source.
//
// The widget is shown at once, before there is a static output. When the static output arrives, the
// viewer moves into it in place of the frame, and Python empties the widget's own output. So a
// saved notebook never contains a widget, whose model would be gone when the notebook is opened
// again. When Python closes the view, the frame returns to its place. When the static output is
// cleared, the viewer goes with it and Python is notified. A view shown again elsewhere leaves its
// old place.

import type { Link } from "../app/linked_views.ts";
import { mount } from "../app/viewer.ts";
import { h } from "../base/dom.ts";
import { Channel, type Model } from "../data/channel.ts";
import { LiveSource } from "../data/live_source.ts";
import { Bundle } from "../data/wire_format.ts";
import type { ProfileHeader } from "../data/wire_types.ts";
import { followTheme, whenCleared } from "./notebook_host.ts";

declare const VIEWER_CSS: string;

const MAX_HEIGHT = 340;
/** Interval and number of searches for the static output. */
const PLACE_MS = 200;
const PLACE_TIMES = 600;
const SILENT =
  "Python does not answer: the Jupyter kernel is busy or has stopped. The view stays as it is.";
/** Channels by mark. Listeners added in `render` would be removed with the view; these stay. */
const channels = new Map<string, Channel>();
/** Functions that remove a view from the page, by mark. */
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
  // Keeps out the notebook's styles and, by Lumino's own attribute, its one-letter shortcuts:
  // there, D twice would delete a cell.
  const host = h("div", { class: "epprof-live", "data-lm-suppress-shortcuts": "true" });
  const root = h("div");
  host.attachShadow({ mode: "open" }).append(h("style", {}, VIEWER_CSS), root);
  el.append(host);
  const bundle = new Bundle<ProfileHeader>(await firstBytes(model, channel));
  const target = String(model.get("place"));
  shown.get(mark)?.();
  const viewer = mount(root, bundle, new LiveSource(channel), {
    tab: String(model.get("tab")),
    maxHeight: MAX_HEIGHT,
    greedyWheel: false,
    roomy: false,
    link: model.get("link") as Link | null,
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
  // The next cell clears the output that created the view; the static output may still arrive.
  return () => {
    left = PLACE_TIMES;
  };
}

/** First picture that Python sent with the widget, or requested if it was already used. */
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
