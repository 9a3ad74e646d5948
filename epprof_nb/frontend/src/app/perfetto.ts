// Button that downloads the profile as a trace for Perfetto, or says how to write one.

import { showText } from "../base/clipboard.ts";
import { h, on } from "../base/dom.ts";
import type { DataSource } from "../data/data_source.ts";

const FILE = "trace.json.gz";
const UI = "https://ui.perfetto.dev";
/** Call that writes a trace with all that Perfetto shows. */
const COMMAND = 'prof.to_perfetto("trace.pftrace")';

export function perfetto(source: DataSource): HTMLElement {
  const button = h(
    "button",
    { type: "button", class: "ep-pill ep-perfetto", title: `Open in Perfetto, ${UI}` },
    "Perfetto",
  );
  on(button, "click", async () => {
    let message = `Write a trace in Python, and drop the file on ${UI}:`;
    try {
      const bytes = await source.trace();
      if (bytes) {
        download(bytes);
        message = `Drop the downloaded ${FILE} on ${UI}. If nothing was downloaded, write it:`;
      }
    } catch (error) {
      message = `${error instanceof Error ? error.message : error} ${message}`;
    }
    const home = button.closest<HTMLElement>(".ep-viewer");
    if (home) showText(message, COMMAND, home);
  });
  return button;
}

function download(bytes: Uint8Array<ArrayBuffer>): void {
  const href = URL.createObjectURL(new Blob([bytes], { type: "application/gzip" }));
  h("a", { href, download: FILE }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
