import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Range } from "../../src/base/time_scale.ts";
import { CounterLoader, tooCoarse } from "../../src/data/counter_loader.ts";
import { MAX_POINTS } from "../../src/data/counters.ts";
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
  const requests: Range[] = [];
  const loaded: Range[] = [];
  const source = {
    live: true,
    zooms: true,
    counters: async (window: Range) => {
      requests.push(window);
      return bundle([], []);
    },
  } as unknown as DataSource;
  beforeEach(() => {
    vi.useFakeTimers();
    requests.length = loaded.length = 0;
  });
  afterEach(() => vi.useRealTimers());

  test("are requested with a margin once the view rests, if the header's are too coarse", async () => {
    const loader = new CounterLoader(source, whole, (_, window) => loaded.push(window));
    loader.request({ start: 0, end: 9e9 }, 1000);
    await vi.runAllTimersAsync();
    expect(requests).toEqual([]);
    loader.request({ start: 1e9, end: 1.1e9 }, 1000);
    loader.request({ start: 1e9, end: 1.2e9 }, 1000);
    await vi.runAllTimersAsync();
    expect(requests).toEqual([{ start: 0.9e9, end: 1.3e9 }]);
    expect(loaded).toEqual(requests);
    // A small move needs no request.
    loader.request({ start: 1.05e9, end: 1.25e9 }, 1000);
    await vi.runAllTimersAsync();
    expect(requests.length).toBe(1);
    loader.request({ start: 1.05e9, end: 1.06e9 }, 1000);
    await vi.runAllTimersAsync();
    expect(requests.length).toBe(2);
  });
  test("are not requested on a static page", async () => {
    const page = { ...source, live: false, zooms: false } as DataSource;
    new CounterLoader(page, whole, () => {}).request({ start: 1, end: 1e6 }, 1000);
    await vi.runAllTimersAsync();
    expect(requests).toEqual([]);
  });
  test("are used within it, and the header's elsewhere", () => {
    const tracks = new CounterTracks([{ what: "busy", device: 0, name: "GPU" }]);
    tracks.use(bundle([0, 1e10], [0, 5e9]));
    tracks.use(bundle([1000, 2000], [0, 1000]), { start: 0, end: 5000 });
    expect(tracks.describe(0, { start: 1200, end: 1300 })).toContain("100 %");
    expect(tracks.describe(0, { start: 3000, end: 3100 })).toContain("0 %");
    expect(tracks.describe(0, { start: 1e9, end: 2e9 })).toContain("50 %");
  });
  test("say so where records are missing", () => {
    const unknown: [number, number][] = [[500, 900]];
    const tracks = new CounterTracks([{ what: "busy", device: 0, name: "GPU", unknown }]);
    tracks.use(bundle([0, 500], [0, 500]));
    expect(tracks.describe(0, { start: 100, end: 400 })).toContain("100 %");
    expect(tracks.describe(0, { start: 600, end: 700 })).toBe("GPU: records are missing here");
    expect(tracks.describe(0, { start: 900, end: 950 })).toContain("0 %");
  });
});

test("points are too coarse where pixels are closer", () => {
  const view = { start: 0, end: 1e9 };
  expect(tooCoarse({ start: 0, end: (1e9 * MAX_POINTS) / 1000 }, view, 1000)).toBe(false);
  expect(tooCoarse({ start: 0, end: (1.1e9 * MAX_POINTS) / 1000 }, view, 1000)).toBe(true);
});
