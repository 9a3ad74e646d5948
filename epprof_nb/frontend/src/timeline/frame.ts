// Drawing of one frame of the timeline from its geometry.

import { ticks } from "../base/time_scale.ts";
import type { Highlight } from "../data/events.ts";
import type { Renderer } from "../render/renderer.ts";
import type { Corner } from "./corner.ts";
import type { CounterTracks } from "./counter_tracks.ts";
import type { Geometry } from "./geometry.ts";
import type { LaneLabels } from "./lane_labels.ts";
import type { PlacedLane } from "./lanes.ts";
import type { Overlays } from "./overlays/overlay.ts";
import { rulerLabels, withoutReserved } from "./ruler.ts";

/** Parts that draw a frame. */
interface Tools {
  renderer: Renderer;
  labels: LaneLabels;
  tracks: CounterTracks;
  overlays: Overlays;
  corner: Corner;
}

export function drawFrame(geometry: Geometry, highlight: Highlight | null, tools: Tools): void {
  const { view, width, height, ruler, head, sticky, lanes, inView, palette } = geometry;
  const { renderer: r, overlays } = tools;
  tools.labels.show(sticky, inView, ruler, head, geometry.scroll);
  tools.labels.more(geometry.cutOff);
  r.begin({ view, width, height, palette, highlight });
  const { step, times } = ticks(view, width);
  const { base, labels } = rulerLabels(times, step, view);
  const reserved = overlays.all.flatMap((overlay) => overlay.reserved?.(geometry) ?? []);
  r.ruler(
    times,
    withoutReserved(
      labels,
      times.map((time) => geometry.x(time)),
      reserved,
    ),
    ruler,
  );
  for (const overlay of overlays.all) overlay.under?.(r, geometry);
  r.clip(ruler, head);
  for (const row of sticky) drawRow(row, geometry, tools);
  r.clip(head, height);
  for (const row of inView) drawRow(row, geometry, tools);
  r.clip(0, height);
  for (const overlay of overlays.all) overlay.draw?.(r, geometry);
  r.end();
  const foldable = [...sticky, ...lanes].filter(({ folded }) => folded !== null);
  tools.corner.show(
    base,
    foldable.every(({ folded }) => folded),
  );
}

function drawRow(row: PlacedLane, geometry: Geometry, { renderer, tracks, labels }: Tools): void {
  const offset = geometry.offset(row);
  if (row.counter !== null) {
    const scale = tracks.draw(renderer, row.counter, geometry, row.y + offset, row.height);
    labels.scale(row.key, scale);
  } else renderer.separator(row.y + offset - 4);
  for (const { slice, band } of row.bands) renderer.row(slice, { ...band, y: band.y + offset });
}
