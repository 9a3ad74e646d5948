// How a name is cut to the room there is.

/** Fewer letters would be crumbs. */
const LEAST = 3;
/** With less room than for so many letters, both ends of a statement would be crumbs. */
const SHORT = 16;

/**
 * As much of a text as fits; nothing where only crumbs would.
 *
 * Names of kernels often differ at their ends only, so they keep both. A statement says at its
 * beginning what it does: with little room it keeps that.
 */
export function cut(
  text: string,
  room: number,
  statement: boolean,
  measure: (text: string) => number,
): string {
  const whole = measure(text);
  if (whole <= room) return text;
  // Letters differ in width: start from the average and give up letters until it fits.
  const most = Math.floor((room / whole) * text.length);
  const begins = statement && most < SHORT;
  for (let keep = most; keep >= LEAST; keep--) {
    const head = begins ? keep : Math.ceil(keep * 0.6);
    const first = text.slice(0, head).replace(/[\s.(]+$/, "");
    const part = `${first}…${text.slice(text.length - (keep - head))}`;
    if (measure(part) <= room) return part;
  }
  return "";
}
