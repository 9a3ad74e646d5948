// Statistics of the repeats with a strip chart: one dot per repeat, higher for a longer wall time.

import { h } from "../base/dom.ts";
import { duration } from "../base/format.ts";
import type { Repeats } from "../data/wire_types.ts";

export function repeats({ text, count, mean, points, names }: Repeats): HTMLElement {
  const low = Math.min(...points);
  const spread = Math.max(...points) - low;
  const height = (value: number): number => (spread > 0 ? (value - low) / spread : 0.5);
  const each = count / points.length;
  const label = `Wall time of each ${names.unit}, ${duration(low)} to ${duration(low + spread)}`;
  const strip = h("span", { class: "ep-strip", role: "img", "aria-label": label, title: label });
  const line = h("span", { class: "ep-strip-mean" });
  line.style.bottom = percent(height(mean));
  strip.append(line);
  points.forEach((value, i) => {
    const name =
      each === 1
        ? `${names.unit} ${names.first + i}: ${duration(value)}`
        : `about ${Math.round(each)} ${names.unit}s from ${names.first + Math.round(i * each)} on: ${duration(value)}`;
    const dot = h("span", { class: "ep-strip-dot", title: name });
    dot.style.left = percent((i + 0.5) / points.length);
    dot.style.bottom = percent(height(value));
    strip.append(dot);
  });
  strip.style.width = `${Math.min(Math.max(points.length * 9, 54), 360)}px`;
  return h("p", { class: "ep-repeats" }, h("span", {}, text), strip);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)}%`;
}
