// Holders of memory as a tree: pool, category, modules, then line and op.

import { isPath } from "../base/format.ts";
import type { Holders } from "../data/memory_holders.ts";

const BEFORE = "before this profile";

export interface HolderNode {
  name: string;
  /** Whole path of a module; the name of other nodes. */
  title: string;
  level: string;
  /** Part of the counter of memory that has its colour; empty for several. */
  part: string;
  bytes: number;
  /** Greatest first. */
  children: HolderNode[];
}

/** Part of the counter of memory that a holder belongs to. */
export function partOf({ category, name }: Holders, holder: number): string {
  return category[holder] ?? (name[holder] === `(${BEFORE})` ? BEFORE : "unknown");
}

export function holderTree(holders: Holders, root: string): HolderNode {
  const top: HolderNode = {
    name: root,
    title: root,
    level: "device",
    part: "",
    bytes: 0,
    children: [],
  };
  const known = new Map<string, HolderNode>();
  for (const [i, bytes] of holders.bytes.entries()) {
    top.bytes += bytes;
    const part = partOf(holders, i);
    const module = holders.module[i];
    const [cell, line, op] = [holders.cell[i], holders.line[i], holders.name[i] ?? ""];
    const place = cell !== null && line !== null ? `${cell}:${line}` : "";
    const inner = isPath(module ?? "") ? (module ?? "").split(".") : [module ?? ""];
    const path = [
      ["pool", holders.pool[i] ?? "unknown"],
      ["category", part],
      ...inner.map((name) => ["module", name]),
      ["line", place],
      ["op", op === module || op === `(${BEFORE})` ? "" : op],
    ];
    let node = top;
    let key = "";
    for (const [level, name] of path) {
      if (!name) continue;
      key += `\n${level}\t${name}`;
      let child = known.get(key);
      if (!child) {
        const within = level === "module" && node.level === "module" ? `${node.title}.` : "";
        const colour = level === "pool" ? "" : part;
        child = { name, title: within + name, level, part: colour, bytes: 0, children: [] };
        known.set(key, child);
        node.children.push(child);
      }
      child.bytes += bytes;
      node = child;
    }
  }
  for (const node of [top, ...known.values()]) node.children.sort((a, b) => b.bytes - a.bytes);
  return top;
}
