// Sampling of long lists.

/** At most so many of some things, evenly spread. */
export function thinned<T>(all: readonly T[], most: number): T[] {
  if (all.length <= most) return [...all];
  const step = (all.length - 1) / Math.max(most - 1, 1);
  return Array.from({ length: most }, (_, i) => all[Math.round(i * step)]);
}
