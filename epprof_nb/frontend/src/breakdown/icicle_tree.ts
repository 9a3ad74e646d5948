// Tree of paths from the session to the kernels, and the layout of its icicle.

import { count, signedChange } from "../base/format.ts";
import type { EventColumns, RowSlice } from "../data/events.ts";
import { BUSY_KINDS, KIND, KINDS, kindCode } from "../data/kinds.ts";
import type { TreeData } from "../data/wire_types.ts";
import { changeVariant, SHADES } from "../render/event_colours.ts";

/** Measure shown by the width of a box. */
export type Measure = "device" | "host" | "kernels" | "launches" | "waits";

const COLUMNS = {
  device: "device_ns",
  host: "host_ns",
  kernels: "kernels",
  launches: "launches",
  waits: "waits",
} as const;

/** Levels for a module's own work. */
export const PASSES = ["forward", "backward"];

/** Name and level that select the events of a node. */
export interface TreeNode {
  /** Name of an op or activity; the module's name for its own work. */
  name: string;
  level: string;
  /** Python stacks of its work, and whether they launched any; of nodes in a tree of stacks. */
  stacks?: (number | null)[];
  launched?: boolean;
}

/** Controls of the direction of text. */
const BIDI = /[\u202a-\u202e\u2066-\u2069]/;

/** Levels of the tree that are activities; the other levels are ops. */
const ACTIVITY_LEVELS: string[] = [...BUSY_KINDS, "graph_launch"];

/** Cell or file, and line. */
export type Place = [cell: string, line: number];

/** Place without its folders. */
export function placeText(place: Place): string {
  return place.join(":").replace(/.*[\\/]/, "");
}

export class Tree {
  readonly size: number;
  readonly depth: Int32Array;
  readonly children: number[][];
  /** Kind of activity with most of a node's device time. */
  readonly kind: Uint8Array;
  readonly maxDepth: number;
  /** Whether boxes include work that the new side of a comparison lacks. */
  withRemoved = false;

  constructor(readonly data: TreeData) {
    this.size = data.parent.length;
    this.depth = new Int32Array(this.size);
    this.children = Array.from({ length: this.size }, () => []);
    const time = Array.from({ length: this.size }, () => new Float64Array(KINDS.length));
    data.parent.forEach((above, i) => {
      if (above < 0) return;
      this.depth[i] = this.depth[above] + 1;
      this.children[above].push(i);
    });
    for (let i = this.size - 1; i >= 0; i--) {
      // Merged nodes have lost the kinds below them; kernels have most of their time.
      if (data.others[i] && data.kernels[i] > 0) time[i][KIND.kernel] += data.device_ns[i];
      else if (this.isLeaf(i)) time[i][kindCode(this.level(i))] += data.device_ns[i];
      const above = data.parent[i];
      if (above < 0) continue;
      for (const [kind, ns] of time[i].entries()) time[above][kind] += ns;
    }
    this.kind = Uint8Array.from(time, (of, i) => {
      if (this.isLeaf(i)) return kindCode(this.level(i));
      const most = Math.max(...of);
      return most > 0 ? of.indexOf(most) : 0;
    });
    this.maxDepth = this.depth.reduce((most, d) => Math.max(most, d), 0);
  }

  /** Displayed name of a node; the short name of a kernel. */
  name(node: number): string {
    const { others } = this.data;
    if (others[node]) return `(${others[node]} smaller)`;
    const name = this.data.short_names?.[this.data.name[node]] ?? this.fullName(node);
    return this.#withPlace(name || "(no name)", node, placeText);
  }

  #withPlace(name: string, node: number, text: (place: Place) => string): string {
    const place = this.place(node);
    const times = this.data.recursion?.[node] ?? 1;
    // A name that turns the direction of text must not turn its place, too.
    const shown = BIDI.test(name) ? `\u2068${name}\u2069` : name;
    return place ? `${shown} (${text(place)})${times > 1 ? ` ×${count(times)}` : ""}` : name;
  }

  /** Name in the profile. */
  fullName(node: number): string {
    return this.data.names[this.data.name[node]];
  }

  /** Whole name, for a tooltip. */
  title(node: number): string {
    if (this.data.others[node]) return this.name(node);
    return this.#withPlace(this.fullName(node), node, (place) => place.join(":"));
  }

  /** Values of the old side of a comparison; undefined in other trees. */
  before(measure: Measure): number[] | undefined {
    const column = COLUMNS[measure];
    return column === "host_ns" ? undefined : this.data[`old_${column}`];
  }

  /** Change of a node in a comparison; empty in other trees. */
  change(node: number, measure: Measure): string {
    const before = this.before(measure)?.[node];
    const after = this.data[COLUMNS[measure]]?.[node] ?? 0;
    return before === undefined || before === after ? "" : signedChange(before, after);
  }

  /** Variant of the colour: of the change, or of the operator if operators have hues. */
  variant(node: number, measure: Measure): number {
    const before = this.before(measure);
    if (before) return changeVariant(before[node], this.data[COLUMNS[measure]]?.[node] ?? 0);
    const hue = this.data.hue?.[node] ?? -1;
    return hue < 0 ? 0 : SHADES + hue;
  }

  level(node: number): string {
    return this.data.names[this.data.level[node]];
  }

  /** Whether the node is an activity rather than an op. */
  isLeaf(node: number): boolean {
    return ACTIVITY_LEVELS.includes(this.level(node));
  }

  /** Cell or file of a frame, and its line; null for other nodes. */
  place(node: number): Place | null {
    const { cell, line, names } = this.data;
    return cell && line && cell[node] >= 0 ? [names[cell[node]], line[node]] : null;
  }

  /** Text of the line of a frame; empty if it is not known. */
  text(node: number): string {
    return this.data.names[this.data.text?.[node] ?? -1] ?? "";
  }

  describe(node: number): TreeNode {
    const { stack_id, stack_node = [], parent, count } = this.data;
    const level = this.level(node);
    const name = this.fullName(PASSES.includes(level) ? parent[node] : node);
    if (!stack_id) return { name, level };
    // An activity belongs to the stacks of the frame above, a frame to all below it.
    const own = this.isLeaf(node) ? parent[node] : node;
    const isIn = (at: number): boolean =>
      at === own || (own === node && at > node && isIn(parent[at]));
    const stacks = stack_id.filter((_, i) => isIn(stack_node[i]));
    return { name, level, stacks, launched: count[node] > 0 };
  }

  /** Rank of a node among its siblings, before its size counts; merged nodes come last. */
  rank(node: number): number {
    return this.data.others[node] ? 9 : PASSES.indexOf(this.level(node));
  }

  /** Device time below a node in one pass (forward or backward); host time if there is none. */
  ofPass(pass: string, node: number): number {
    const { device_ns, host_ns } = this.data;
    if (this.level(node) === pass)
      return (device_ns[0] > 0 ? device_ns : (host_ns ?? device_ns))[node];
    return this.children[node].reduce((sum, child) => sum + this.ofPass(pass, child), 0);
  }

  /** Path to a node, from the session down. */
  path(node: number): number[] {
    const path: number[] = [];
    for (let at = node; at >= 0; at = this.data.parent[at]) path.unshift(at);
    return path;
  }

  /** Total of a measure for each node and all below it. */
  values(measure: Measure): Float64Array {
    const { host_ns, parent } = this.data;
    if (measure !== "host" || !host_ns) {
      const values = Float64Array.from(this.data[COLUMNS[measure]] ?? new Float64Array(this.size));
      return this.withRemoved ? this.#withRemoved(values, this.before(measure) ?? []) : values;
    }
    // Ops on other threads may outlast their parent: widen it to hold its children.
    const inner = new Float64Array(this.size);
    const values = new Float64Array(this.size);
    for (let i = this.size - 1; i >= 0; i--) {
      values[i] = Math.max(host_ns[i], inner[i]);
      if (parent[i] >= 0) inner[parent[i]] += values[i];
    }
    return values;
  }

  /** New values, plus the old values of the removed work below each node. */
  #withRemoved(values: Float64Array, before: number[]): Float64Array {
    const removed = new Float64Array(this.size);
    for (let i = this.size - 1; i >= 0; i--) {
      if (values[i] === 0) removed[i] = before[i];
      values[i] += removed[i];
      if (i > 0) removed[this.data.parent[i]] += removed[i];
    }
    return values;
  }

  /** Find nodes by name, and their share of the total, counting nested matches once. */
  find(
    matches: (name: string) => boolean,
    values: Float64Array,
  ): { found: Set<number>; share: number } {
    const matched = new Set<number>();
    const covered = new Uint8Array(this.size);
    let sum = 0;
    for (let i = 0; i < this.size; i++) {
      const above = this.data.parent[i];
      if (above >= 0) covered[i] = covered[above];
      if (this.data.others[i] || !(matches(this.name(i)) || matches(this.fullName(i)))) continue;
      matched.add(i);
      if (!covered[i]) sum += values[i];
      covered[i] = 1;
    }
    return { found: matched, share: values[0] > 0 ? sum / values[0] : 0 };
  }
}

/** Boxes of ops or of activities by depth, as columns for the renderer. */
class IcicleBoxes implements EventColumns {
  readonly start: Float64Array;
  readonly dur: Float64Array;
  readonly reach: Float64Array;
  readonly kind: Float64Array;
  readonly variant: Uint8Array;
  /** Row slice of each depth. */
  readonly rows: RowSlice[] = [];
  readonly #positions = new Map<number, number>();

  constructor(
    readonly prefix: "op" | "act",
    private readonly tree: Tree,
    readonly nodes: number[],
    start: Float64Array,
    values: Float64Array,
    private readonly measure: Measure,
  ) {
    nodes.sort((a, b) => tree.depth[a] - tree.depth[b] || start[a] - start[b]);
    this.start = Float64Array.from(nodes, (node) => start[node]);
    this.dur = Float64Array.from(nodes, (node) => values[node]);
    this.reach = Float64Array.from(nodes, (node) => start[node] + values[node]);
    this.kind = Float64Array.from(nodes, (node) => tree.kind[node]);
    this.variant = Uint8Array.from(nodes, (node) => tree.variant(node, measure));
    for (const [i, node] of nodes.entries()) this.#positions.set(node, i);
    let first = 0;
    for (let depth = 0; depth <= tree.maxDepth; depth++) {
      let end = first;
      while (end < nodes.length && tree.depth[nodes[end]] === depth) end++;
      this.rows.push({ set: this, first, end });
      first = end;
    }
  }

  name(_column: string, event: number): string {
    return this.tree.fullName(this.nodes[event]);
  }

  label(event: number): string {
    const node = this.nodes[event];
    return `${this.tree.name(node)} ${this.tree.change(node, this.measure)}`.trimEnd();
  }

  labels(first: number, end: number): string[] {
    return [...new Set(Array.from({ length: end - first }, (_, i) => this.label(first + i)))];
  }

  /** Position of a node's box; undefined if the node is not among these boxes. */
  position(node: number): number | undefined {
    return this.#positions.get(node);
  }
}

/** Layout of the boxes for a measure: largest siblings first, without boxes of zero width. */
export class IcicleLayout {
  readonly values: Float64Array;
  readonly start: Float64Array;
  readonly ops: IcicleBoxes;
  readonly activities: IcicleBoxes;

  constructor(
    readonly tree: Tree,
    measure: Measure,
  ) {
    const values = tree.values(measure);
    const start = new Float64Array(tree.size);
    const shown: number[] = values[0] > 0 ? [0] : [];
    for (const node of shown) {
      let at = start[node];
      for (const child of this.#sortedChildren(node, values)) {
        start[child] = at;
        at += values[child];
        shown.push(child);
      }
    }
    this.values = values;
    this.start = start;
    this.ops = new IcicleBoxes(
      "op",
      tree,
      shown.filter((i) => !tree.isLeaf(i)),
      start,
      values,
      measure,
    );
    this.activities = new IcicleBoxes(
      "act",
      tree,
      shown.filter((i) => tree.isLeaf(i)),
      start,
      values,
      measure,
    );
  }

  /** Children with a width, largest first; then a module's own work, then merged nodes. */
  #sortedChildren(node: number, values: Float64Array): number[] {
    const { children } = this.tree;
    return children[node]
      .filter((child) => values[child] > 0)
      .sort((a, b) => this.tree.rank(a) - this.tree.rank(b) || values[b] - values[a]);
  }

  children(node: number): number[] {
    return this.#sortedChildren(node, this.values);
  }

  /** Find the node at a depth and a position along the width; -1 for none. */
  nodeAt(depth: number, position: number): number {
    for (const boxes of [this.ops, this.activities]) {
      const row = boxes.rows[depth];
      if (!row) continue;
      let low = row.first;
      let high = row.end;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (boxes.reach[middle] > position) high = middle;
        else low = middle + 1;
      }
      if (low < row.end && boxes.start[low] <= position) return boxes.nodes[low];
    }
    return -1;
  }
}
