import { beforeEach, expect, test, vi } from "vitest";
import { Events } from "../../src/data/events.ts";
import { KIND, KINDS } from "../../src/data/kinds.ts";
import { Bundle } from "../../src/data/wire_format.ts";
import type { EventsHeader } from "../../src/data/wire_types.ts";
import { OTHER, RANKED, SHADES } from "../../src/render/event_colours.ts";
import { Colouring } from "../../src/timeline/colouring.ts";
import { encode } from "../helpers.ts";

const NAMES = ["forward", "backward", "void ns::gemm<float>(int)", "relu", "HtoD", "sync"];
/** [name, kind, op, duration] of the activities. */
const ACTS = [
  [2, KIND.kernel, 0, 50],
  [3, KIND.kernel, 0, 10],
  [2, KIND.kernel, 1, 80],
  [4, KIND.memcpy, -1, 5],
  [5, KIND.synchronization, 1, 900],
];

function profile(names = NAMES, acts = ACTS): Events {
  const column = (i: number) => ({ tag: "i32" as const, values: acts.map((act) => act[i]) });
  const times = (values: number[]) => ({ tag: "f64" as const, values });
  return new Events(
    new Bundle<EventsHeader>(
      encode(
        {
          kinds: [...KINDS],
          names,
          short_names: names === NAMES ? { 2: "gemm" } : {},
          slices: { op: [[0, 0, 0, 2]], api: [], act: [[1, 0, 0, acts.length]] },
          shown: {},
        },
        {
          "op.start": times([0, 100]),
          "op.dur": times([90, 90]),
          "op.name": { tag: "i32", values: [0, 1] },
          "op.op": { tag: "i32", values: [-1, -1] },
          "act.start": times(acts.map((_, i) => 100 * i)),
          "act.dur": column(3),
          "act.kind": column(1),
          "act.name": column(0),
          "act.op": column(2),
        },
      ),
    ),
  );
}

const stored = new Map<string, string>();
beforeEach(() => {
  stored.clear();
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => stored.set(key, value),
  });
});

function applied(by?: "kind" | "name" | "op"): { colouring: Colouring; events: Events } {
  const events = profile();
  const colouring = new Colouring(events, true, [], () => {});
  if (by) colouring.by = by;
  colouring.apply(events);
  return { colouring, events };
}

test("by kind, kernels next to each other differ in shade, and equal names do not", () => {
  const { act, op } = applied().events;
  const [gemm, relu, again, copy] = act.variant ?? [];
  expect(again).toBe(gemm);
  expect(relu).not.toBe(gemm);
  expect(Math.max(gemm, relu)).toBeLessThan(SHADES);
  expect(copy).toBe(0);
  expect(op.variant?.[0]).not.toBe(op.variant?.[1]);
});

test("by name, the names with the most device time come first; waits have none", () => {
  const { colouring, events } = applied("name");
  expect(colouring.hues.map(({ name }) => name)).toEqual(["gemm", "relu", "HtoD"]);
  const [gemm, relu, , copy, wait] = events.act.variant ?? [];
  expect([gemm, relu, copy, wait]).toEqual([SHADES, SHADES + 1, SHADES + 2, OTHER]);
  expect([...(events.op.variant ?? [])]).toEqual([OTHER, OTHER]);
});

test("names beyond the hues share one, which the legend then has", () => {
  const count = RANKED + 2;
  const names = Array.from({ length: count }, (_, i) => `kernel_${i}`);
  const acts = names.map((_, i) => [i, KIND.kernel, -1, 100 - i]);
  const events = profile(names, acts);
  const colouring = new Colouring(events, true, [], () => {});
  colouring.by = "name";
  colouring.apply(events);
  expect(colouring.hues.at(-1)).toEqual({ name: "other", number: -1 });
  expect(colouring.hues.length).toBe(RANKED + 1);
  expect([...(events.act.variant ?? [])].slice(-2)).toEqual([OTHER, OTHER]);
});

test("by op, kernels have the colour of the op that launched them", () => {
  const { colouring, events } = applied("op");
  expect(colouring.hues.map(({ name }) => name)).toEqual(["backward", "forward"]);
  expect([...(events.act.variant ?? [])]).toEqual([SHADES + 1, SHADES + 1, SHADES, OTHER, SHADES]);
  expect([...(events.op.variant ?? [])]).toEqual([SHADES + 1, SHADES]);
});

test("the choice is kept, and names keep their colours in another window", () => {
  const { colouring } = applied("op");
  const later = new Colouring(profile(), true, [], () => {});
  expect(later.by).toBe("op");
  stored.set("epprof-colour-by", "nonsense");
  expect(new Colouring(profile(), true, [], () => {}).by).toBe("kind");
  const window = profile();
  colouring.apply(window);
  expect(window.op.variant?.[0]).toBe(SHADES + 1);
  expect(colouring.hues.length).toBeLessThanOrEqual(RANKED);
});

test("without storage, as in a sandboxed page, the choice lasts as long as the page", () => {
  vi.stubGlobal("localStorage", {
    getItem: () => {
      throw new Error("denied");
    },
    setItem: () => {
      throw new Error("denied");
    },
  });
  const changed = vi.fn();
  const colouring = new Colouring(profile(), true, [], changed);
  colouring.by = "name";
  expect(colouring.by).toBe("name");
  expect(changed).toHaveBeenCalledOnce();
});

test("by operator, nodes have the hue of their operator, and so has what they launched", () => {
  const events = profile();
  Object.assign(events.op, { operator: Float64Array.from([-1, 1]) });
  const operators = [
    { name: "MatMul", number: 9 },
    { name: "Relu", number: 1 },
  ];
  const colouring = new Colouring(events, false, operators, () => {});
  expect([colouring.by, colouring.choices]).toEqual(["operator", ["operator"]]);
  colouring.apply(events);
  expect(colouring.hues).toEqual(operators);
  expect([...(events.op.variant ?? [])]).toEqual([0, SHADES + 1]);
  expect([...(events.act.variant ?? [])]).toEqual([OTHER, OTHER, SHADES + 1, OTHER, SHADES + 1]);
  expect(new Colouring(events, true, operators, () => {}).by).toBe("kind");
});

test("events that all look alike leave nothing to choose", () => {
  stored.set("epprof-colour-by", "op");
  const colouring = new Colouring(profile(), false, [], () => {});
  expect([colouring.by, colouring.choices, colouring.hues]).toEqual([undefined, [], []]);
});
