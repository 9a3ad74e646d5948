// Entry point of the flame graph of a comparison, on a page or in a frame.

import { type Difference, DifferenceView } from "../breakdown/difference_flame_graph.ts";
import { fromBase64, inflate } from "../data/wire_format.ts";
import { followHost } from "./page_host.ts";

async function start(): Promise<void> {
  const root = document.getElementById("epprof");
  const payload = document.getElementById("epprof-payload")?.textContent;
  if (!root || !payload) return;
  const text = new TextDecoder().decode(await inflate(fromBase64(payload)));
  const view = new DifferenceView(JSON.parse(text) as Difference);
  root.classList.add("ep-viewer", "ep");
  root.replaceChildren(view.element);
  followHost((theme) => {
    root.dataset.theme = theme;
    view.setTheme(theme);
  });
}

void start();
