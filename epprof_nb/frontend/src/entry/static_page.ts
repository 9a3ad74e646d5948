// Entry point of the static page: decodes the embedded payload and mounts the viewer. In a notebook
// the page is a sandboxed frame, which receives the theme and sends its height as messages.

import { mount } from "../app/viewer.ts";
import { EmbeddedSource } from "../data/embedded_source.ts";
import type { ProfileHeader } from "../data/model.ts";
import { Bundle, fromBase64, inflate } from "../data/wire_format.ts";
import type { Theme } from "../render/theme.ts";

const FRAME_HEIGHT = 340;
const PAGE_REST = 250;

async function start(): Promise<void> {
  const root = document.getElementById("epprof");
  const payload = document.getElementById("epprof-payload")?.textContent;
  if (!root || !payload) return;
  const bytes = await inflate(fromBase64(payload));
  const framed = window.parent !== window;
  const bundle = new Bundle<ProfileHeader>(bytes);
  const viewer = mount(root, bundle, new EmbeddedSource(bundle), {
    tab: root.dataset.tab ?? "timeline",
    maxHeight: framed ? FRAME_HEIGHT : Math.max(window.innerHeight - PAGE_REST, 280),
    greedyWheel: !framed,
    roomy: !framed,
  });

  const system = matchMedia("(prefers-color-scheme: dark)");
  let requested: Theme | null = null;
  const apply = (): void => {
    const theme = requested ?? (system.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    viewer.setTheme(theme);
  };
  system.addEventListener("change", apply);
  window.addEventListener("message", (event) => {
    if (event.source !== window.parent) return;
    const theme: unknown = event.data?.epprofTheme;
    if (theme === "light" || theme === "dark") {
      requested = theme;
      apply();
    }
  });
  apply();
  if (!framed) return;
  // The frame's origin is opaque, so no target origin can be given; the height is not secret.
  const sendHeight = (): void =>
    window.parent.postMessage(
      { epprofHeight: Math.ceil(document.documentElement.offsetHeight) },
      "*",
    );
  new ResizeObserver(sendHeight).observe(document.documentElement);
  sendHeight();
}

void start();
