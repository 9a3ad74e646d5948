// Parts of a label that is cut in the middle where space is short.

/** Number of characters at the beginning and at the end that stay. */
const KEPT = 8;

/**
 * Split a label into a beginning, whose end may be cut off, and an end that stays.
 *
 * Threads of one pool differ at the end of their names, others by a number at the beginning. If one
 * of `others` has the same beginning and end, the first letters that differ replace the end.
 */
export function labelParts(text: string, others: readonly string[]): [head: string, tail: string] {
  const rest = text.length - KEPT;
  if (rest < KEPT) return [text, ""];
  const ends = (label: string): string => label.slice(0, KEPT) + label.slice(-KEPT);
  const alike = others.filter((other) => other !== text && ends(other) === ends(text));
  const differs = alike.map((other) => [...text].findIndex((letter, i) => letter !== other[i]));
  const first = Math.min(...differs.filter((at) => at >= 0), rest);
  const tail = text.slice(first, first + KEPT);
  return [text.slice(0, first), first < rest ? `${tail}…` : tail];
}
