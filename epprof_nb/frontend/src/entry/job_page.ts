// Entry point of the strips of a job, on a page or in a frame. A timeline on the same page zooms to
// what is selected.

import { fromBase64, inflate } from "../data/wire_format.ts";
import type { StripsData } from "../job/selection.ts";
import { Strips } from "../job/strips.ts";
import { followHost } from "./page_host.ts";

async function start(): Promise<void> {
  followHost(() => {});
  const svg = document.querySelector<SVGSVGElement>("svg[data-epprof-strips]");
  const payload = document.getElementById("epprof-strips")?.textContent;
  if (!svg || !payload) return;
  const text = new TextDecoder().decode(await inflate(fromBase64(payload)));
  new Strips(svg, JSON.parse(text) as StripsData, (view) => {
    if (!view) return;
    const detail = { from: null, view };
    document.dispatchEvent(new CustomEvent("epprof-moved-job", { detail }));
  });
}

void start();
