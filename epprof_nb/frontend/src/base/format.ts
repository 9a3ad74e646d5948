// Formatting of numbers and names. Python's formatting follows the same rules; both are tested with
// tests/data/number_format.json.

const TIMES: [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
];
const SIZES: [number, string][] = [
  [1e12, "TB"],
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "kB"],
];

/** Three significant digits, and all digits before the decimal point. */
function threeDigits(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95) return count(Number(value.toFixed(0)));
  return value.toFixed(size >= 9.995 ? 1 : 2);
}

/** An integer with thousands separators. */
export function count(value: number | bigint): string {
  return value.toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/**
 * A count, preceded by the 1-based position of `number` if given; rounded if it is approximate. If
 * only `drawn` of them can be visited, the position counts only these.
 */
export function position(
  number: number | null,
  total: number,
  approximate = false,
  drawn?: number,
): string {
  const place = number === null ? "" : `${count(number + 1)} of `;
  if (number !== null && drawn !== undefined)
    return `${place}${count(drawn)} drawn, ${count(total)} in all`;
  if (!approximate) return `${place}${count(total)}`;
  const digits = 10 ** Math.max(Math.floor(Math.log10(Math.max(total, 1))) - 1, 0);
  return `about ${count(Math.round(total / digits) * digits)}`;
}

/** A duration in the unit that fits, from nanoseconds. */
export function duration(ns: number): string {
  if (ns === 0) return "0 s";
  for (const [scale, unit] of TIMES) {
    // 999.7 us rounds to 1000: it reads better as 1.00 ms.
    if (Math.abs(ns) >= scale * 0.9995) return `${threeDigits(ns / scale)} ${unit}`;
  }
  return `${ns.toFixed(0)} ns`;
}

/** A relative change with its sign, from a value to another. */
export function signedChange(before: number, after: number): string {
  if (!before) return "new";
  if (!after) return "removed";
  const change = after / before - 1;
  return `${change < 0 ? "\u2212" : "+"}${percent(Math.abs(change))}`;
}

/** A point in time with microsecond digits, so that neighbours stay distinguishable. */
export function moment(ns: number): string {
  const [scale, unit, digits] = Math.abs(ns) >= 1e9 ? [1e9, "s", 6] : [1e6, "ms", 3];
  return `${(ns / scale).toFixed(digits)} ${unit}`;
}

/** Bytes in decimal units. */
export function size(bytes: number): string {
  for (const [scale, unit] of SIZES) {
    if (Math.abs(bytes) >= scale * 0.9995) return `${threeDigits(bytes / scale)} ${unit}`;
  }
  return `${bytes.toFixed(0)} B`;
}

/** A rate in bytes per second. */
export function rate(bytes: number): string {
  return `${size(bytes)}/s`;
}

/**
 * A share of 1 in percent: with one decimal below 10 %, else as whole percent. "0 %" and "100 %" are
 * written for exactly these values only.
 */
export function percent(share: number): string {
  const value = share * 100;
  if (value === 0) return "0 %";
  if (value > 0 && value < 0.05) return "< 0.1 %";
  if (value >= 99.5 && value < 100) return "> 99 %";
  return `${value.toFixed(Math.abs(value) >= 9.95 ? 0 : 1)} %`;
}

/** Put `text` on one line of at most `limit` characters, elided in the middle. */
export function shorten(text: string, limit: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  if (line.length <= limit) return line;
  // Characters, not UTF-16 units, as in Python.
  const characters = [...line];
  if (characters.length <= limit) return line;
  const dot = isPath(line) ? characters.indexOf(".", characters.length - limit) : -1;
  if (dot >= 0 && dot < characters.length - Math.floor(limit / 2))
    return `…${characters.slice(dot + 1).join("")}`;
  const head = Math.floor(limit / 2);
  const begin = characters.slice(0, head).join("");
  const end = characters.slice(characters.length - (limit - 1 - head)).join("");
  // If the text was cut before, omit the part between both cuts, too.
  return `${begin.split("…", 1)[0]}…${end.slice(end.lastIndexOf("…") + 1)}`;
}

/** Whether a text is a dotted path, such as the path of a module. Its last name matters most. */
export function isPath(text: string): boolean {
  return /^[\p{L}\p{N}_]+(?:\.[\p{L}\p{N}_]+)+(?<!\.py)$/u.test(text);
}
