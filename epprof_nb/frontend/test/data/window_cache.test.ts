import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Range } from "../../src/base/time_scale.ts";
import type { DataSource, WindowRequest } from "../../src/data/data_source.ts";
import type { Events } from "../../src/data/events.ts";
import { WindowCache } from "../../src/data/window_cache.ts";

const whole = { start: 0, end: 1000 };

/** A fake Python side that records requests and answers on demand. */
function rig(thinned = true) {
  const requests: WindowRequest[] = [];
  const answers: ((events: Events | Error) => void)[] = [];
  const window = (request: WindowRequest): Promise<Events> =>
    new Promise((resolve, reject) => {
      requests.push(request);
      answers.push((one) => (one instanceof Error ? reject(one) : resolve(one)));
    });
  const drawn: Events[] = [];
  const ranges: Range[] = [];
  const statuses: string[] = [];
  const cache = new WindowCache(
    { window, live: true } as unknown as DataSource,
    whole,
    (events, sent) => {
      drawn.push(events);
      ranges.push(sent);
    },
    (text) => statuses.push(text),
  );
  const events = (): Events => ({ merged: thinned }) as Events;
  const answer = async (i: number, events: Events | Error): Promise<void> => {
    answers[i](events);
    await vi.advanceTimersByTimeAsync(0);
  };
  return { cache, requests, drawn, ranges, statuses, events, answer };
}

const request = (
  start: number,
  end: number,
  lanes: WindowRequest["lanes"] = null,
): WindowRequest => ({
  view: { start, end },
  width: 100,
  lanes,
});

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe("windows", () => {
  test("are requested one at a time; of the pending ones only the last", async () => {
    const { cache, requests, ranges, answer, events } = rig();
    cache.request(request(0, 100));
    cache.request(request(300, 400));
    cache.request(request(700, 800));
    expect(requests.length).toBe(1);
    await answer(0, events());
    await answer(1, events());
    expect(ranges.at(-1)).toEqual({ start: 675, end: 825 });
    // With a margin of a quarter on both sides, within the profile.
    expect(requests.map(({ view }) => [view.start, view.end])).toEqual([
      [0, 125],
      [675, 825],
    ]);
    expect(requests.map(({ width }) => width)).toEqual([125, 150]);
  });

  test("in the cache are drawn again without a request", async () => {
    const { cache, requests, drawn, answer, events } = rig();
    const [first, second] = [events(), events()];
    cache.request(request(0, 100));
    await answer(0, first);
    cache.request(request(700, 800));
    await answer(1, second);
    cache.request(request(20, 110));
    expect(requests.length).toBe(2);
    expect(drawn).toEqual([first, second, first]);
  });

  test("are requested before the margin of the last is used up", async () => {
    const { cache, requests, drawn, answer, events } = rig();
    cache.request(request(400, 500));
    await answer(0, events());
    cache.request(request(384, 484));
    expect(requests.length).toBe(1);
    cache.request(request(380, 480));
    expect(requests.map(({ view }) => view.start)).toEqual([375, 355]);
    expect(drawn.length).toBe(1);
    const next = events();
    await answer(1, next);
    expect(drawn[1]).toBe(next);
  });

  test("are evicted, except for the first", async () => {
    const { cache, requests, drawn, answer, events } = rig();
    const first = events();
    cache.add(request(0, 1000), first);
    for (let i = 0; i < 20; i++) {
      cache.request(request(10 * i, 10 * i + 1));
      await answer(i, events());
    }
    cache.request(request(0, 1000));
    expect(drawn.at(-1)).toBe(first);
    cache.request(request(190, 191));
    expect(requests.length).toBe(20);
    cache.request(request(10, 11));
    expect(requests.length).toBe(21);
  });

  test("that arrive late are not drawn when a cached window covers the view", async () => {
    const { cache, requests, drawn, answer, events } = rig();
    cache.add(request(0, 1000), events());
    cache.request(request(300, 600));
    cache.request(request(0, 1000));
    await answer(0, events());
    expect(drawn).toEqual([]);
    cache.request(request(310, 610));
    expect([requests.length, drawn.length]).toEqual([1, 1]);
    // When no window covers the view, a part is better than nothing.
    cache.request(request(700, 720));
    cache.request(request(703, 733));
    await answer(1, events());
    expect([requests.length, drawn.length]).toEqual([3, 2]);
  });

  test("at the ends of the profile need no margin", async () => {
    const { cache, requests, answer, events } = rig();
    cache.request(request(0, 100));
    await answer(0, events());
    cache.request(request(10, 110));
    cache.request(request(0, 100));
    expect(requests.length).toBe(1);
  });

  test("without merged events cover any zoom", async () => {
    const { cache, requests, answer, events } = rig(false);
    cache.request(request(0, 1000));
    await answer(0, events());
    cache.request(request(500, 501));
    expect(requests.length).toBe(1);
  });

  test("are requested again for other lanes", async () => {
    const { cache, requests, answer, events } = rig();
    cache.request(request(0, 100, [0, 10]));
    await answer(0, events());
    cache.request(request(0, 100, [2, 8]));
    expect(requests.length).toBe(1);
    cache.request(request(0, 100, [5, 15]));
    expect(requests.length).toBe(2);
  });

  test("around the view are prefetched when idle, and not drawn", async () => {
    const { cache, requests, drawn, answer, events } = rig();
    cache.request(request(400, 600));
    for (let i = 0; i < 6; i++) {
      if (requests.length > i) await answer(i, events());
      await vi.advanceTimersByTimeAsync(1000);
    }
    // Zoom in, later, earlier, zoom out: then there is nothing left to prefetch.
    expect(requests.map(({ view }) => [view.start, view.end])).toEqual([
      [350, 650],
      [425, 575],
      [450, 750],
      [250, 550],
      [200, 800],
    ]);
    expect(drawn.length).toBe(1);
    for (const [start, end] of [
      [460, 540],
      [520, 720],
      [300, 500],
      [320, 700],
    ]) {
      cache.request(request(start, end));
    }
    expect(requests.length).toBe(5);
    expect(drawn.length).toBe(5);
  });

  test("are dropped when the highlight changes", async () => {
    const { cache, requests, drawn, answer, events } = rig();
    cache.request(request(0, 100));
    cache.clear();
    cache.request(request(0, 100));
    await answer(0, events());
    expect(drawn).toEqual([]);
    await answer(1, events());
    expect(requests.length).toBe(2);
    expect(drawn.length).toBe(1);
  });

  test("are loaded as they were when the highlight changes: the same rectangles", async () => {
    const { cache, requests, answer, events } = rig();
    cache.add({ view: whole, width: 130, lanes: null }, events());
    cache.request(request(0, 1000));
    cache.clear();
    cache.request(request(0, 1000));
    cache.clear();
    cache.request(request(0, 1000));
    const first = { view: whole, width: 130, lanes: null };
    expect(requests).toEqual([first, first]);
    await answer(1, events());
    // What it does not cover is requested as usual.
    cache.request(request(500, 600));
    expect(requests[2]).toEqual({ view: { start: 475, end: 625 }, width: 150, lanes: null });
  });
});

describe("a missing answer", () => {
  test("leads to one retry and a status, until an answer arrives", async () => {
    const { cache, requests, statuses, drawn, answer, events } = rig();
    cache.request(request(0, 100));
    await vi.advanceTimersByTimeAsync(2100);
    expect(requests.length).toBe(2);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(requests.length).toBe(2);
    expect(statuses.at(-1)).toMatch(/no answer from Python/);
    await answer(1, events());
    expect(statuses.at(-1)).toBe("");
    expect(drawn.length).toBe(1);
  });

  test("leads to a retry for the latest window", async () => {
    const { cache, requests } = rig();
    cache.request(request(0, 100));
    cache.request(request(500, 600));
    await vi.advanceTimersByTimeAsync(2100);
    expect(requests[1].view.start).toBe(475);
  });

  test("of a failed request shows Python's error", async () => {
    const { cache, statuses, answer } = rig();
    cache.request(request(0, 100));
    await answer(0, new Error("ValueError: no"));
    expect(statuses.at(-1)).toBe("ValueError: no");
  });
});
