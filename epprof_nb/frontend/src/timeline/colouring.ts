// Choice of what the colours of events mean, and the assignment of hues and shades to names. Python
// chooses the hues of operators (views/timeline/op_colours.py).

import { memoize } from "../base/memoize.ts";
import type { EventSet, Events } from "../data/events.ts";
import { isDeviceWork, KIND } from "../data/kinds.ts";
import type { Hue } from "../data/wire_types.ts";
import { OTHER, RANKED, SHADES } from "../render/event_colours.ts";

const COLOUR_BY = ["kind", "name", "op", "operator"] as const;
export type ColourBy = (typeof COLOUR_BY)[number];

const SETTING = "epprof-colour-by";

export class Colouring {
  /** Names that get hues, most time first. */
  readonly #names = new Map<ColourBy, string[]>();
  /** Shade of each name of ops and of kernels, in turn. */
  readonly #shades = { op: new Map<string, number>(), act: new Map<string, number>() };
  /** Choices that distinguish the events of this profile. */
  readonly choices: readonly ColourBy[];
  #by: ColourBy | undefined;

  /** `operators` are the nodes' operators, or other names, with the most time. */
  constructor(
    private readonly first: Events,
    hasDeviceWork: boolean,
    private readonly operators: readonly Hue[],
    private readonly onChange: () => void,
  ) {
    this.choices = COLOUR_BY.filter((by) =>
      by === "operator" ? operators.length > 0 : hasDeviceWork,
    );
    const stored = storedChoice();
    this.#by = this.choices.find((by) => by === stored) ?? this.choices[0];
    // Users see the kernels with the most time side by side, so these get their shades first.
    for (const name of longest(first, "name")) this.#shade("act", name);
  }

  /** Choice of the user, or the first one; undefined if all events look alike. */
  get by(): ColourBy | undefined {
    return this.#by;
  }

  set by(by: ColourBy) {
    this.#by = by;
    try {
      localStorage.setItem(SETTING, by);
    } catch {
      // A sandboxed page has no storage; the choice lasts as long as the page.
    }
    this.onChange();
  }

  /** Names with a hue of their own, and the hue of all others if there are any. */
  get hues(): Hue[] {
    if (this.#by === "operator") return [...this.operators];
    const all = this.#ranked();
    const own = all.slice(0, RANKED).map((name, number) => ({ name, number }));
    return all.length > own.length ? [...own, { name: "other", number: -1 }] : own;
  }

  /** Set the colours of events. */
  apply(events: Events): void {
    const { op, act } = events;
    if (this.#by === "operator") {
      const hues = op.operator ?? new Float64Array(op.length).fill(-1);
      // An op without an operator is neutral.
      op.variant = Uint8Array.from(hues, (hue) => (hue < 0 ? 0 : SHADES + hue));
      act.variant = Uint8Array.from(act.op, (of) => (hues[of] >= 0 ? SHADES + hues[of] : OTHER));
      return;
    }
    const own = this.#ranked().slice(0, RANKED);
    const hues = new Map(own.map((name, i) => [name, SHADES + i]));
    const hue = (name: string): number => hues.get(name) ?? OTHER;
    if (this.#by === "kind" || !this.#by) {
      op.variant = byName(op, (name) => this.#shade("op", name));
      act.variant = byName(act, (name) => this.#shade("act", name));
      // Copies have a hatching instead of shades, and ops without device work stay neutral.
      act.kind?.forEach((kind, i) => {
        if (kind !== KIND.kernel && act.variant) act.variant[i] = 0;
      });
      op.kind?.forEach((kind, i) => {
        if (kind === KIND.other && op.variant) op.variant[i] = 0;
      });
    } else if (this.#by === "name") {
      op.variant = new Uint8Array(op.length).fill(OTHER);
      act.variant = byName(act, hue);
    } else {
      const opHues = byName(op, hue);
      op.variant = opHues;
      act.variant = Uint8Array.from(act.op, (of) => opHues[of] ?? OTHER);
    }
  }

  #shade(of: "op" | "act", name: string): number {
    const shades = this.#shades[of];
    return memoize(shades, name, () => shades.size % SHADES);
  }

  #ranked(): string[] {
    const by = this.#by;
    if (by === "kind" || !by) return [];
    return memoize(this.#names, by, () => longest(this.first, by));
  }
}

/** Names of activities, or of the ops that launched them, most time first. */
function longest({ op, act }: Events, by: ColourBy): string[] {
  const total = new Map<string, number>();
  for (let i = 0; i < act.length; i++) {
    const of = act.op[i];
    if (!isDeviceWork(act.kind?.[i] ?? KIND.other) || (by === "op" && !(of >= 0))) continue;
    const name = by === "op" ? op.label(of) : act.label(i);
    total.set(name, (total.get(name) ?? 0) + (act.cover?.[i] ?? act.dur[i]));
  }
  return [...total].sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

/** One value per event, computed once per name. */
function byName(set: EventSet, value: (name: string) => number): Uint8Array {
  const known = new Map<number, number>();
  return Uint8Array.from({ length: set.length }, (_, i) => {
    const code = set.code("name", i);
    return memoize(known, code, () => value(set.label(i)), Infinity);
  });
}

function storedChoice(): string | null {
  try {
    return localStorage.getItem(SETTING);
  } catch {
    return null;
  }
}
