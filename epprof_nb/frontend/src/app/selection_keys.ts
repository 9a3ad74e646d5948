// Keys that select events, time ranges, and the memory at a point or at its peak. Keys for moving and
// for lanes are in timeline/input/navigation_keys.ts.

import type { Command } from "../timeline/input/shortcut_registry.ts";
import type { MemoryMark } from "../timeline/overlays/memory_mark.ts";
import type { RangeMark } from "../timeline/overlays/range_mark.ts";
import type { Timeline } from "../timeline/timeline.ts";
import type { SearchBar } from "./search_bar.ts";

export function selectionKeys(
  timeline: Timeline,
  search: SearchBar,
  mark: RangeMark,
  memory: MemoryMark,
): Command[] {
  const { selection, header } = timeline;
  const command = (keys: string[], help: string, run: () => unknown): Command => ({
    keys,
    help,
    group: "Select",
    run,
  });
  const commands = [
    command(["/", "ctrl+f"], "Search names", () => search.open()),
    command(["i"], "Start a time range at the pointer", () => mark.edge("start")),
    command(["o"], "End the time range at the pointer", () => mark.edge("end")),
    command(["escape"], "Clear the selection, then the time range", () => {
      if (selection.query) selection.clear();
      else if (memory.picked) memory.set(null);
      else if (mark.range) mark.set(null);
      else return false;
      return true;
    }),
    command(["]"], "Next highlighted event, or the activity that a single event launched", () =>
      selection.next(1),
    ),
    command(["["], "Previous highlighted event, or the launch of a single event", () =>
      selection.next(-1),
    ),
  ];
  const hasMemory = header.counters.some(({ parts }) => parts);
  if (!hasMemory) return commands;
  return [
    command(["b"], "Show what holds the memory at the pointer, or at the peak", () =>
      memory.pick(timeline.pointed),
    ),
    ...commands,
  ];
}
