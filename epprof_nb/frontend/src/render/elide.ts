// How a name is cut to the room there is, so that it can still be told from others.

/** Fewer letters or figures would be crumbs: of one end, of both, of a cut that others share. */
const LEAST = 3;
const LEAST_BOTH = 6;
const LEAST_SHARED = 12;
/** With less room than for so many letters, both ends of a statement would be crumbs. */
const SHORT = 16;
/** Shares of the letters that the beginning keeps: both ends, its beginning, its end alone. */
const BOTH = [0.6, 0.3];
const BEGINNING = 1;
const END = 0;

interface Part {
  head: string;
  tail: string;
  text: string;
}

/**
 * As much of a text as fits; nothing where it would say nothing.
 *
 * Names of kernels often differ at their ends only, so they keep both. A statement says at its
 * beginning what it does: with little room it keeps that. Where one of `others` could be cut to the
 * same, another part is kept that tells it apart; where no part does, only what says much by
 * itself is left.
 */
export function cut(
  text: string,
  room: number,
  statement: boolean,
  measure: (text: string) => number,
  others: readonly string[] = [],
): string {
  const whole = measure(text);
  if (whole <= room) return text;
  // Letters differ in width: start from the average and give up letters until it fits.
  const most = Math.floor((room / whole) * text.length);
  const begins = statement && most < SHORT;
  let usual: Part | null = null;
  for (const share of begins ? [BEGINNING, ...BOTH, END] : [...BOTH, END, BEGINNING]) {
    const part = fitting(text, share, most, room, measure);
    if (!part) continue;
    usual ??= part;
    if (!others.some((other) => other !== text && matches(other, part))) return part.text;
  }
  return usual && letters(usual.text) >= LEAST_SHARED ? usual.text : "";
}

function fitting(
  text: string,
  share: number,
  most: number,
  room: number,
  measure: (text: string) => number,
): Part | null {
  for (let keep = most; keep >= LEAST; keep--) {
    const kept = Math.ceil(keep * share);
    const head = text.slice(0, kept).replace(/[\s.(]+$/, "");
    const tail = text.slice(text.length - (keep - kept));
    const part = `${head}…${tail}`;
    if (measure(part) > room) continue;
    const least = head && tail ? LEAST_BOTH : LEAST;
    return letters(part) >= least ? { head, tail, text: part } : null;
  }
  return null;
}

function matches(other: string, { head, tail }: Part): boolean {
  return other.length > head.length + tail.length && other.startsWith(head) && other.endsWith(tail);
}

function letters(text: string): number {
  return text.match(/[\p{L}\p{N}_]/gu)?.length ?? 0;
}
