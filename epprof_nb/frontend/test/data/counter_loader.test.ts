import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Range } from "../../src/base/time_scale.ts";
import { CounterLoader, tooCoarse } from "../../src/data/counter_loader.ts";
import { POINTS } from "../../src/data/counters.ts";
import type { DataSource } from "../../src/data/data_source.ts";
import { Bundle } from "../../src/data/wire_format.ts";
import { CounterTracks } from "../../src/timeline/counter_tracks.ts";
import { encode } from "../helpers.ts";

const whole = { start: 0, end: 1e10 };
const bundle = (t: number[], value: number[]): Bundle<object> =>
  new Bundle(
    encode(
      {},
      {
        "counter.0.t": { tag: "f64", values: t },
        "counter.0.value": { tag: "f64", values: value },
      },
    ),
  );

describe("counters of a window", () => {
  const asked: Range[] = [];
  const counted: Range[] = [];
  const source = {
    live: true,
    counters: async (window: Range) => {
      asked.push(window);
      return bundle([], []);
    },
  } as unknown as DataSource;
  beforeEach(() => {
    vi.useFakeTimers();
    asked.length = counted.length = 0;
  });
  afterEach(() => vi.useRealTimers());

  test("are asked for once it stands still, with a margin, where the whole's are too coarse", async () => {
    const recount = new CounterLoader(source, whole, (_, window) => counted.push(window));
    recount.request({ start: 0, end: 9e9 }, 1000);
    await vi.runAllTimersAsync();
    expect(asked).toEqual([]);
    recount.request({ start: 1e9, end: 1.1e9 }, 1000);
    recount.request({ start: 1e9, end: 1.2e9 }, 1000);
    await vi.runAllTimersAsync();
    expect(asked).toEqual([{ start: 0.9e9, end: 1.3e9 }]);
    expect(counted).toEqual(asked);
    // A small move is served by what is there.
    recount.request({ start: 1.05e9, end: 1.25e9 }, 1000);
    await vi.runAllTimersAsync();
    expect(asked.length).toBe(1);
    recount.request({ start: 1.05e9, end: 1.06e9 }, 1000);
    await vi.runAllTimersAsync();
    expect(asked.length).toBe(2);
  });
  test("are not asked of a page", async () => {
    const page = { ...source, live: false } as DataSource;
    new CounterLoader(page, whole, () => {}).request({ start: 1, end: 1e6 }, 1000);
    await vi.runAllTimersAsync();
    expect(asked).toEqual([]);
  });
  test("are told where they hold, and those of the whole elsewhere", () => {
    const tracks = new CounterTracks([{ what: "busy", device: 0, name: "GPU" }]);
    tracks.use(bundle([0, 1e10], [0, 5e9]));
    tracks.use(bundle([1000, 2000], [0, 1000]), { start: 0, end: 5000 });
    expect(tracks.describe(0, { start: 1200, end: 1300 }, whole)).toContain("100.0 %");
    expect(tracks.describe(0, { start: 3000, end: 3100 }, whole)).toContain("0.0 %");
    expect(tracks.describe(0, { start: 1e9, end: 2e9 }, whole)).toContain("50.0 %");
  });
});

test("points are too coarse where pixels lie closer", () => {
  const view = { start: 0, end: 1e9 };
  expect(tooCoarse({ start: 0, end: (1e9 * POINTS) / 1000 }, view, 1000)).toBe(false);
  expect(tooCoarse({ start: 0, end: (1.1e9 * POINTS) / 1000 }, view, 1000)).toBe(true);
});
