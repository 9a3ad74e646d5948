// Items of long lists, evenly spread.

/** Sample at most `most` items, evenly spread. */
export function sampleEvenly<T>(all: readonly T[], most: number): T[] {
  if (all.length <= most) return [...all];
  const step = (all.length - 1) / Math.max(most - 1, 1);
  return Array.from({ length: most }, (_, i) => all[Math.round(i * step)]);
}
