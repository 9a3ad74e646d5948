// Starts the viewer of a static page. The page embeds its styles and its program compressed, which
// makes a saved notebook smaller; they are inflated here and run as inline elements, as the content
// security policy of the page allows. Without scripts, the plain HTML of the page remains.

import { fromBase64, inflate } from "../data/wire_format.ts";

async function load(): Promise<void> {
  const packed = document.getElementById("epprof-viewer")?.textContent;
  if (!packed) return;
  const text = new TextDecoder().decode(await inflate(fromBase64(packed)));
  // Python joins the two with a character that neither contains.
  const [styles, program] = text.split("\0");
  for (const [tag, content] of [
    ["style", styles],
    ["script", program],
  ]) {
    const element = document.createElement(tag);
    element.textContent = content;
    document.head.append(element);
  }
}

void load();
