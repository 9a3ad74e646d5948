// Icicle chart of the tree, from the session at the top down to the kernels.

import { FrameScheduler } from "../base/animation_frame.ts";
import { h, on } from "../base/dom.ts";
import { count, percent, shorten } from "../base/format.ts";
import { toPixel, toTime } from "../base/time_scale.ts";
import { Tooltip } from "../base/tooltip.ts";
import { Viewport } from "../base/viewport.ts";
import type { Highlight } from "../data/events.ts";
import { CanvasRenderer } from "../render/canvas_renderer.ts";
import { palette, type Theme } from "../render/palettes.ts";
import { Matcher } from "./filter.ts";
import { type NodeActions, nodePanel, nodeTooltip } from "./icicle_details.ts";
import { IcicleLayout, type Measure, type Tree } from "./icicle_tree.ts";
import { treeTable } from "./tree_table.ts";

const ROW = 20;
const GAP = 1;
const MEASURES: Record<Measure, string> = {
  device: "device time",
  host: "host time",
  kernels: "kernels",
  launches: "launches",
  waits: "waits",
};
const HINT =
  "Click a box for its details, double-click to zoom into it. Keyboard: arrow keys move, Enter zooms in, Escape zooms out, 0 shows all.";

export class Icicle {
  readonly element: HTMLElement;
  readonly #canvas = h("canvas", { "aria-hidden": "true" });
  /** Scrolling element: as high as its content, up to a limit. The canvas has the part in view. */
  readonly #stage: HTMLElement;
  readonly #content = h("div", {}, this.#canvas);
  readonly #crumbs = h("nav", { class: "ep-chain", "aria-label": "Zoomed into" });
  readonly #measures = h("div", {
    class: "ep-switch",
    role: "group",
    "aria-label": "Measure shown by the width",
  });
  readonly #details = h("div", { class: "ep-panel", "aria-live": "polite" });
  readonly #table = h("details", { class: "ep-tree" }, h("summary", {}, "as a table"));
  readonly #tip = new Tooltip();
  readonly #renderer = new CanvasRenderer(this.#canvas, () => this.draw());
  #layout: IcicleLayout;
  #viewport!: Viewport;
  #root = 0;
  #selected = -1;
  #matches: Set<number> | null = null;
  #pattern = "";
  #theme: Theme = "light";
  readonly #frames = new FrameScheduler(() => this.#drawNow());
  readonly #resizes = new ResizeObserver(() => this.#resize());

  constructor(
    private readonly tree: Tree,
    private readonly actions: NodeActions,
    private readonly onStatus: (text: string) => void,
  ) {
    this.#stage = h(
      "div",
      {
        class: "ep-icicle-stage",
        tabindex: "0",
        role: "application",
        "aria-roledescription": "icicle",
        "aria-label": `Tree from the session to the kernels. ${HINT}`,
      },
      this.#content,
    );
    const offered = (Object.keys(MEASURES) as Measure[]).filter(
      (m) => tree.values(m)[0] > 0 && !(m === "kernels" && tree.data.launches),
    );
    for (const measure of offered) {
      const button = h("button", { type: "button", "data-measure": measure }, MEASURES[measure]);
      on(button, "click", () => this.measure(measure));
      this.#measures.append(button);
    }
    const head = h("div", { class: "ep-icicle-head" }, this.#crumbs, this.#measures);
    this.element = h(
      "div",
      { class: "ep-icicle" },
      head,
      this.#stage,
      this.#details,
      this.#table,
      this.#tip.element,
    );
    this.#layout = new IcicleLayout(tree, offered[0] ?? "device");
    this.#listen();
    this.measure(offered[0] ?? "device");
    on(this.#table, "toggle", () => this.#showTable());
    this.#resizes.observe(this.#stage);
  }

  setTheme(theme: Theme): void {
    this.#theme = theme;
    this.draw();
  }

  /** Set the measure shown by the width of a box: device time, host time or number of kernels. */
  measure(measure: Measure): void {
    for (const button of this.#measures.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset.measure === measure));
    }
    this.#layout = new IcicleLayout(this.tree, measure);
    const width = this.#viewport?.width ?? 0;
    this.#viewport?.destroy();
    this.#viewport = new Viewport({ start: 0, end: Math.max(this.#layout.values[0], 1) });
    this.#viewport.width = width;
    this.#viewport.watch(() => this.draw());
    this.#selected = -1;
    this.#root = 0;
    this.#showCrumbs();
    this.#showDetails();
    this.search(this.#pattern);
    this.#showTable();
    this.draw();
  }

  /** Highlight the boxes whose names match a text or regular expression. */
  search(pattern: string): void {
    this.#pattern = pattern;
    this.#matches = null;
    if (pattern) {
      const matcher = new Matcher(pattern);
      const matches = (text: string): boolean => matcher.matches(text);
      const { found, share } = this.tree.find(matches, this.#layout.values);
      this.#matches = found;
      this.onStatus(
        [`${count(found.size)} found, ${percent(share)} of the total`, matcher.note]
          .filter(Boolean)
          .join(" · "),
      );
    } else {
      const { paths, others } = this.tree.data;
      const left = others.reduce((sum, n) => sum + n, 0);
      const rest = left ? `, the smallest ${count(left)} merged` : "";
      this.onStatus(`${count(paths)} paths${rest}`);
    }
    this.draw();
  }

  draw(): void {
    this.#frames.request();
  }

  /** Release everything that would outlive the element. */
  destroy(): void {
    this.#resizes.disconnect();
    this.#frames.destroy();
    this.#viewport.destroy();
    this.#renderer.destroy();
    this.element.remove();
  }

  #height(): number {
    return (this.tree.maxDepth + 1) * ROW;
  }

  #resize(): void {
    const width = this.#stage.clientWidth;
    if (width <= 0) return;
    this.#viewport.width = width;
    this.#content.style.height = `${this.#height()}px`;
    this.#renderer.resize(width, this.#stage.clientHeight, window.devicePixelRatio || 1);
    this.#drawNow();
  }

  #drawNow(): void {
    const { view, width } = this.#viewport;
    if (!width) return;
    const { ops, activities } = this.#layout;
    const r = this.#renderer;
    const height = this.#stage.clientHeight;
    const top = this.#stage.scrollTop;
    r.begin({ view, width, height, palette: palette(this.#theme), highlight: this.#highlight() });
    ops.rows.forEach((row, depth) => {
      const band = { y: depth * ROW - top, height: ROW - GAP };
      if (band.y + ROW <= 0 || band.y >= height) return;
      r.row(row, { ...band, look: "op" });
      r.row(activities.rows[depth], { ...band, look: "activity" });
    });
    r.end();
  }

  #highlight(): Highlight | null {
    if (!this.#matches && this.#selected < 0) return null;
    const { ops, activities } = this.#layout;
    const marks = (nodes: number[]): Uint8Array =>
      Uint8Array.from(nodes, (node) => (!this.#matches || this.#matches.has(node) ? 1 : 0));
    const op = ops.position(this.#selected);
    const act = activities.position(this.#selected);
    return {
      op: marks(ops.nodes),
      act: marks(activities.nodes),
      api: new Uint8Array(0),
      outlined:
        op !== undefined
          ? { prefix: "op", event: op }
          : act !== undefined
            ? { prefix: "act", event: act }
            : null,
    };
  }

  #listen(): void {
    const nodeAt = (event: MouseEvent): number =>
      this.#layout.nodeAt(
        Math.floor((event.offsetY + this.#stage.scrollTop) / ROW),
        toTime(event.offsetX, this.#viewport.view, this.#viewport.width),
      );
    on(this.#canvas, "pointermove", (event) => {
      const node = nodeAt(event);
      this.#canvas.classList.toggle("ep-over", node >= 0);
      if (node < 0) this.#tip.hide();
      else this.#tip.show(nodeTooltip(this.tree, node), event.clientX, event.clientY, this.element);
    });
    on(this.#stage, "scroll", () => this.draw());
    on(this.#canvas, "pointerleave", () => this.#tip.hide());
    on(this.#canvas, "click", (event) => {
      const node = nodeAt(event);
      if (node < 0) return;
      this.#tip.hide();
      this.#select(node);
    });
    on(this.#canvas, "dblclick", (event) => {
      const node = nodeAt(event);
      if (node >= 0) this.zoom(node);
    });
    on(this.#stage, "keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !this.#key(event.key)) return;
      event.preventDefault();
      // Notebooks have shortcuts of their own on plain keys.
      event.stopPropagation();
    });
  }

  #key(key: string): boolean {
    const at = Math.max(this.#selected, 0);
    const above = this.tree.data.parent[at];
    const beside = (step: number): number => {
      if (above < 0) return at;
      const all = this.#layout.children(above);
      return all[all.indexOf(at) + step] ?? at;
    };
    const out = this.tree.data.parent[this.#root];
    const moves: Record<string, () => void> = {
      ArrowDown: () => this.#select(this.#selected < 0 ? 0 : (this.#layout.children(at)[0] ?? at)),
      ArrowUp: () => this.#select(above < 0 ? at : above),
      ArrowLeft: () => this.#select(beside(-1)),
      ArrowRight: () => this.#select(beside(1)),
      Enter: () => this.zoom(at),
      Escape: () => this.zoom(Math.max(out, 0)),
      "0": () => this.zoom(0),
    };
    const move = moves[key];
    move?.();
    return move !== undefined;
  }

  /** Zoom so that a node's box has the full width. */
  zoom(node: number): void {
    this.#root = node;
    const start = this.#layout.start[node];
    this.#viewport.animateTo({ start, end: start + this.#layout.values[node] });
    this.#showCrumbs();
  }

  #select(node: number): void {
    this.#selected = node;
    const { view, width } = this.#viewport;
    const left = toPixel(this.#layout.start[node], view, width);
    const right = toPixel(this.#layout.start[node] + this.#layout.values[node], view, width);
    // Bring the selected box into view.
    const bottom = (this.tree.depth[node] + 1) * ROW;
    const { scrollTop, clientHeight } = this.#stage;
    this.#stage.scrollTop = Math.max(Math.min(scrollTop, bottom - ROW), bottom - clientHeight);
    if (right <= 0 || left >= width) this.zoom(this.tree.data.parent[node]);
    this.#showDetails();
    this.draw();
  }

  #showCrumbs(): void {
    const crumbs = this.tree.path(this.#root).map((node) => {
      const name = this.tree.name(node);
      const button = h(
        "button",
        { type: "button", class: "ep-link", title: this.tree.title(node) },
        shorten(name, 28),
      );
      if (node === this.#root) button.setAttribute("aria-current", "true");
      on(button, "click", () => {
        this.#select(node);
        this.zoom(node);
      });
      return button;
    });
    this.#crumbs.replaceChildren(...crumbs);
  }

  #showDetails(): void {
    const node = this.#selected;
    if (node < 0) {
      this.#details.replaceChildren(h("p", { class: "ep-faint" }, HINT));
      return;
    }
    this.#details.replaceChildren(
      ...nodePanel(this.tree, node, this.actions, () => this.zoom(node)),
    );
  }

  #showTable(): void {
    if (!this.#table.open) return;
    this.#table.querySelector("table")?.remove();
    this.#table.append(treeTable(this.#layout, this.#root));
  }
}
