// Entry point of the static page: decodes the embedded payload and mounts the viewer.

import { mount } from "../app/viewer.ts";
import { EmbeddedSource } from "../data/embedded_source.ts";
import { Bundle, fromBase64, inflate } from "../data/wire_format.ts";
import type { ProfileHeader } from "../data/wire_types.ts";
import { followHost, framed } from "./page_host.ts";

const FRAME_HEIGHT = 340;
const PAGE_REST = 250;

async function start(): Promise<void> {
  const root = document.getElementById("epprof");
  const payload = document.getElementById("epprof-payload")?.textContent;
  if (!root || !payload) return;
  const bytes = await inflate(fromBase64(payload));
  const bundle = new Bundle<ProfileHeader>(bytes);
  const viewer = mount(root, bundle, new EmbeddedSource(bundle), {
    tab: root.dataset.tab ?? "timeline",
    maxHeight: framed ? FRAME_HEIGHT : Math.max(window.innerHeight - PAGE_REST, 280),
    greedyWheel: !framed,
    roomy: !framed,
    link: root.dataset.link
      ? { group: root.dataset.link, origin: 0, first: { start: 0, end: 0 } }
      : null,
  });
  followHost((theme) => viewer.setTheme(theme));
}

void start();
