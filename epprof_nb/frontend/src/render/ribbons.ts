// Bundling of parallel flow lines into ribbons, because many lines hide the events below them.

/** End points of a line in pixels. */
export interface Line {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}

/** Parallel lines, from [left0, right0] at y0 to [left1, right1] at y1. */
interface Ribbon {
  left0: number;
  right0: number;
  y0: number;
  left1: number;
  right1: number;
  y1: number;
}

/** Maximum distance in pixels between parallel lines at both ends. */
const APART = 12;
/** Ribbons narrower than this at both ends are drawn as a line. */
const NARROW = 3;

/**
 * Bundle lines. Returns the lines that stay alone and the ribbons of the others; each leads from
 * one row to one row.
 */
export function bundle(lines: readonly Line[]): { lines: Line[]; ribbons: Ribbon[] } {
  const sorted = [...lines].sort((a, b) => a.y0 - b.y0 || a.y1 - b.y1 || a.x0 - b.x0);
  const all: Ribbon[] = [];
  let last: Line | null = null;
  for (const line of sorted) {
    const { x0, y0, x1, y1 } = line;
    const now = all.at(-1);
    if (
      now &&
      last &&
      y0 === now.y0 &&
      y1 === now.y1 &&
      x0 - last.x0 <= APART &&
      Math.abs(x1 - last.x1) <= APART
    ) {
      now.right0 = x0;
      now.left1 = Math.min(now.left1, x1);
      now.right1 = Math.max(now.right1, x1);
    } else all.push({ left0: x0, right0: x0, y0, left1: x1, right1: x1, y1 });
    last = line;
  }
  const narrow = ({ left0, right0, left1, right1 }: Ribbon): boolean =>
    right0 - left0 < NARROW && right1 - left1 < NARROW;
  return {
    lines: all.filter(narrow).map(({ left0, y0, left1, y1 }) => ({ x0: left0, y0, x1: left1, y1 })),
    ribbons: all.filter((one) => !narrow(one)),
  };
}
