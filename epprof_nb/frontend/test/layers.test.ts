// The layers of the source folders, and freedom from import cycles. Type imports count.

import { expect, test } from "vitest";

/**
 * The folders from the ground up. A file imports from its own folder or from a lower floor; folders
 * of one floor do not import each other. `timeline` lies above `selection` because it owns the
 * selection controller and shows its panels.
 */
const FLOORS = [
  ["base"],
  ["data"],
  ["render"],
  ["breakdown", "job", "selection", "source"],
  ["timeline"],
  ["app"],
  ["entry"],
];

const sources = import.meta.glob("../src/**/*.ts", {
  query: "?raw",
  import: "default",
  eager: true,
});
const imports = new Map(
  Object.entries(sources).map(([path, text]) => [
    path.replace("../src/", ""),
    importsOf(path.replace("../src/", ""), text),
  ]),
);

/** Paths below src that a file imports or re-exports from. */
function importsOf(path: string, text: string): string[] {
  const found = text.matchAll(/(?:\bfrom|\bimport\(?)\s*"(\.[^"]+)"/g);
  return [...found].map(([, target]) => resolve(path, target));
}

function resolve(path: string, target: string): string {
  const parts = path.split("/").slice(0, -1);
  for (const part of target.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

const folder = (path: string): string => path.split("/")[0];
const floor = (path: string): number =>
  FLOORS.findIndex((folders) => folders.includes(folder(path)));

test("every file lies in a folder of a known floor, and every import was resolved", () => {
  const files = [...imports.keys()];
  expect(files.length).toBeGreaterThan(80);
  expect(files.filter((path) => floor(path) < 0)).toEqual([]);
  expect([...imports.values()].flat().filter((path) => !imports.has(path))).toEqual([]);
  expect(imports.get("timeline/timeline.ts")?.length).toBeGreaterThan(20);
});

test("imports point to the same folder or to a lower floor", () => {
  const wrong = [...imports].flatMap(([path, targets]) =>
    targets
      .filter((target) => folder(path) !== folder(target) && floor(path) <= floor(target))
      .map((target) => `${path} imports ${target}`),
  );
  expect(wrong).toEqual([]);
});

test("no file imports itself through others", () => {
  const done = new Set<string>();
  const cycles: string[] = [];
  const visit = (path: string, above: string[]): void => {
    if (above.includes(path)) {
      cycles.push([...above.slice(above.indexOf(path)), path].join(" -> "));
    } else if (!done.has(path)) {
      for (const target of imports.get(path) ?? []) visit(target, [...above, path]);
      done.add(path);
    }
  };
  for (const path of imports.keys()) visit(path, []);
  expect(cycles).toEqual([]);
});
