// Every event of a file, in blocks that are inflated on first use; see Python's views/wire/embedded_events.py.

import type { Range } from "../../base/time_scale.ts";
import { Events } from "../events.ts";
import type { HolderHeader } from "../memory_holders.ts";
import { Bundle, type ColumnBundle, fromBase64, inflate } from "../wire_format.ts";
import type { EventRef, EventsHeader, Prefix } from "../wire_types.ts";
import { type Chosen, Gathered, nearestChosen, PREFIXES, slicesOf } from "./gathered.ts";
import { mergeIntoBins } from "./merge.ts";

interface Index extends EventsHeader {
  /** Number of events of a block. */
  size: number;
  events: Record<Prefix, number>;
  /** Names of the columns of all blocks. */
  fields: string[];
}

/** Maximum number of rectangles of a window. */
const MAX_RECTS = 50_000;
/** Number of blocks that are inflated at once. */
const PARALLEL = 8;

export class Detail {
  #index: Promise<Bundle<Index>> | undefined;
  readonly #blocks = new Map<string, Promise<Bundle<object>>>();
  readonly #ready = new Map<string, Bundle<object>>();
  #all: Promise<Events> | undefined;
  #counters: Promise<Bundle<object>> | undefined;
  #holders: Promise<Bundle<HolderHeader>> | undefined;

  /** All events. */
  all(): Promise<Events> {
    this.#all ??= this.#loadAll();
    return this.#all;
  }

  /** The block of an event, and its index in it. */
  async blockOf({ prefix, row }: Pick<EventRef, "prefix" | "row">): Promise<[Events, number]> {
    const { header } = await this.#loadIndex();
    const number = Math.floor(row / header.size);
    const block = await this.#block(prefix, number);
    const slices = { op: [], api: [], act: [] };
    const bundle: ColumnBundle<EventsHeader> = {
      header: { ...header, slices },
      names: () => block.names(),
      column: (name) => block.column(name),
    };
    return [new Events(bundle), row - number * header.size];
  }

  /** Columns of the counters with more points than the page has. */
  counters(): Promise<Bundle<object>> {
    this.#counters ??= parsed().then(async () => new Bundle<object>(await embedded("counters")));
    return this.#counters;
  }

  /** Holders of memory at more times than the page has. */
  holders(): Promise<Bundle<HolderHeader>> {
    this.#holders ??= parsed().then(
      async () => new Bundle<HolderHeader>(await embedded("holders")),
    );
    return this.#holders;
  }

  /** The activities that touch any of the time ranges. */
  async activities(ranges: Range[]): Promise<Events> {
    const { header } = await this.#loadIndex();
    const act = await this.#choose("act", ranges);
    const none: Chosen = { positions: new Float64Array(0) };
    return new Events(this.#gather(header, { op: none, api: none, act }));
  }

  /** The events of a window; neighbours thinner than a pixel are merged if there are too many. */
  async window(view: Range, width: number): Promise<Events> {
    const { header } = await this.#loadIndex();
    // The ops above an event of the window may lie outside of it.
    await this.#load("op", [...Array(Math.ceil(header.events.op / header.size)).keys()]);
    const chosen = {} as Record<Prefix, Chosen>;
    for (const prefix of PREFIXES) chosen[prefix] = await this.#choose(prefix, [view]);
    const total = PREFIXES.reduce((sum, prefix) => sum + chosen[prefix].positions.length, 0);
    if (total > MAX_RECTS) {
      const rows = PREFIXES.reduce((sum, prefix) => sum + header.slices[prefix].length, 0);
      const bins = Math.max(Math.min(width, MAX_RECTS / Math.max(rows, 1)), 1);
      const gathered = this.#gather(header, chosen);
      for (const prefix of PREFIXES) {
        const slices = slicesOf(header.slices[prefix], chosen[prefix].positions);
        chosen[prefix] = mergeIntoBins(gathered, prefix, chosen[prefix], slices, view, bins);
      }
    }
    return new Events(this.#gather(header, chosen));
  }

  #gather(header: Index, chosen: Record<Prefix, Chosen>): Gathered {
    const { size } = header;
    const block = (name: string, number: number): Float64Array | BigInt64Array | undefined =>
      this.#ready.get(`${name.split(".")[0]}-${number}`)?.column(name);
    const owners = nearestChosen(chosen.op.positions, header.events.op, (position) =>
      Number(block("op.op", Math.floor(position / size))?.[position % size] ?? -1),
    );
    return new Gathered(header, chosen, header.fields, block, size, owners);
  }

  async #loadAll(): Promise<Events> {
    const { header } = await this.#loadIndex();
    const chosen = {} as Record<Prefix, Chosen>;
    for (const prefix of PREFIXES) {
      const count = header.events[prefix];
      await this.#load(prefix, [...Array(Math.ceil(count / header.size)).keys()]);
      chosen[prefix] = { positions: Float64Array.from({ length: count }, (_, i) => i) };
    }
    return new Events(this.#gather(header, chosen));
  }

  /** Load the blocks that may touch the ranges, and choose the events that do. */
  async #choose(prefix: Prefix, ranges: Range[]): Promise<Chosen> {
    const bundle = await this.#loadIndex();
    const { size, events } = bundle.header;
    const [first, last] = [bundle.column(`${prefix}.first`), bundle.column(`${prefix}.last`)];
    const touches = (from: number, until: number): boolean =>
      ranges.some(({ start, end }) => from <= end && until >= start);
    const numbers = [...Array(Math.ceil(events[prefix] / size)).keys()].filter((number) =>
      touches(Number(first?.[number]), Number(last?.[number])),
    );
    await this.#load(prefix, numbers);
    const positions: number[] = [];
    for (const number of numbers) {
      const block = this.#ready.get(`${prefix}-${number}`);
      const [start, dur] = [block?.column(`${prefix}.start`), block?.column(`${prefix}.dur`)];
      if (!start || !dur) continue;
      for (let i = 0; i < start.length; i++) {
        const from = Number(start[i]);
        if (touches(from, from + Number(dur[i]))) positions.push(number * size + i);
      }
    }
    return { positions: Float64Array.from(positions) };
  }

  #loadIndex(): Promise<Bundle<Index>> {
    this.#index ??= (async () => {
      await parsed();
      return new Bundle<Index>(await embedded("index"));
    })();
    return this.#index;
  }

  async #load(prefix: Prefix, numbers: number[]): Promise<void> {
    for (let i = 0; i < numbers.length; i += PARALLEL)
      await Promise.all(
        numbers.slice(i, i + PARALLEL).map((number) => this.#block(prefix, number)),
      );
  }

  #block(prefix: Prefix, number: number): Promise<Bundle<object>> {
    const name = `${prefix}-${number}`;
    let block = this.#blocks.get(name);
    if (!block) {
      block = embedded(name).then((bytes) => new Bundle<object>(bytes));
      block.then((loaded) => this.#ready.set(name, loaded)).catch(() => this.#blocks.delete(name));
      this.#blocks.set(name, block);
    }
    return block;
  }
}

/** Wait until the whole page is parsed; the viewer starts before that. */
async function parsed(): Promise<void> {
  if (document.readyState === "loading")
    await new Promise((done) => document.addEventListener("DOMContentLoaded", done));
}

/** Inflate a message of the page. */
async function embedded(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const text = document.getElementById(`epprof-${name}`)?.textContent;
  if (!text) throw new Error("This page is incomplete: the file was cut off. Write it again.");
  return inflate(fromBase64(text));
}
