// Elision of names to the available width, keeping them distinguishable.

import { isPath } from "../base/format.ts";

/** Minimum number of letters and digits left: of the beginning, and of both ends. */
const LEAST = 3;
const LEAST_BOTH = 6;
/** With room for fewer letters than this, both ends of a statement would be too short. */
const SHORT = 16;
/** Share of the letters kept at the beginning: both ends, or the beginning only. */
const BOTH = [0.6, 0.3];
const BEGINNING = 1;

interface Part {
  head: string;
  tail: string;
  text: string;
}

/**
 * Elide a text to fit; empty if nothing meaningful remains.
 *
 * Names of kernels often differ only at their ends, so they keep both. A statement begins with what
 * it does, so with little room it keeps its beginning. If one of `others` could be elided to the same
 * text, a part that distinguishes them is kept, if there is one; otherwise only their colours differ.
 * Only a module's path loses its beginning, which it shares with its ancestors.
 */
export function elide(
  text: string,
  room: number,
  statement: boolean,
  measure: (text: string) => number,
  others: readonly string[] = [],
): string {
  const whole = measure(text);
  if (whole <= room) return text;
  if (isPath(text)) {
    const parts = text.split(".");
    for (let first = 1; first < parts.length; first++) {
      const part = `…${parts.slice(first).join(".")}`;
      if (measure(part) <= room) return part;
    }
    return elide(parts[parts.length - 1], room, true, measure);
  }
  // Letters differ in width: start from the average and drop letters until it fits.
  const most = Math.floor((room / whole) * text.length);
  const begins = statement && most < SHORT;
  let usual: Part | null = null;
  for (const share of begins ? [BEGINNING, ...BOTH] : [...BOTH, BEGINNING]) {
    const part = longestFit(text, share, most, room, measure);
    if (!part) continue;
    usual ??= part;
    if (!others.some((other) => other !== text && isAmbiguous(other, part))) return part.text;
  }
  return usual?.text ?? "";
}

function longestFit(
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

function isAmbiguous(other: string, { head, tail }: Part): boolean {
  return other.length > head.length + tail.length && other.startsWith(head) && other.endsWith(tail);
}

function letters(text: string): number {
  return text.match(/[\p{L}\p{N}_]/gu)?.length ?? 0;
}
