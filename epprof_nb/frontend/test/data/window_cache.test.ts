import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Range } from "../../src/base/time_scale.ts";
import type { DataSource } from "../../src/data/data_source.ts";
import type { Events } from "../../src/data/model.ts";
import { Loader, type Want } from "../../src/data/window_cache.ts";

const whole = { start: 0, end: 1000 };

/** Python made up: it notes what it is asked and answers when told to. */
function rig(thinned = true) {
  const asked: Want[] = [];
  const answers: ((events: Events | Error) => void)[] = [];
  const window = (want: Want): Promise<Events> =>
    new Promise((resolve, reject) => {
      asked.push(want);
      answers.push((one) => (one instanceof Error ? reject(one) : resolve(one)));
    });
  const drawn: Events[] = [];
  const shown: Range[] = [];
  const said: string[] = [];
  const loader = new Loader(
    { window } as unknown as DataSource,
    whole,
    (events, sent) => {
      drawn.push(events);
      shown.push(sent);
    },
    (text) => said.push(text),
  );
  const events = (): Events => ({ thinned }) as Events;
  const answer = async (i: number, events: Events | Error): Promise<void> => {
    answers[i](events);
    await vi.advanceTimersByTimeAsync(0);
  };
  return { loader, asked, drawn, shown, said, events, answer };
}

const want = (start: number, end: number, lanes: Want["lanes"] = null): Want => ({
  view: { start, end },
  width: 100,
  lanes,
});

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe("windows", () => {
  test("are asked for one at a time, and of those that wait only the last", async () => {
    const { loader, asked, shown, answer, events } = rig();
    loader.want(want(0, 100));
    loader.want(want(300, 400));
    loader.want(want(700, 800));
    expect(asked.length).toBe(1);
    await answer(0, events());
    await answer(1, events());
    expect(shown.at(-1)).toEqual({ start: 675, end: 825 });
    // With a quarter more on both sides, as far as there is more.
    expect(asked.map(({ view }) => [view.start, view.end])).toEqual([
      [0, 125],
      [675, 825],
    ]);
    expect(asked.map(({ width }) => width)).toEqual([125, 150]);
  });

  test("that were sent are drawn again without asking", async () => {
    const { loader, asked, drawn, answer, events } = rig();
    const [first, second] = [events(), events()];
    loader.want(want(0, 100));
    await answer(0, first);
    loader.want(want(700, 800));
    await answer(1, second);
    loader.want(want(20, 110));
    expect(asked.length).toBe(2);
    expect(drawn).toEqual([first, second, first]);
  });

  test("are asked for before the margin of the last is used up", async () => {
    const { loader, asked, drawn, answer, events } = rig();
    loader.want(want(400, 500));
    await answer(0, events());
    loader.want(want(384, 484));
    expect(asked.length).toBe(1);
    loader.want(want(380, 480));
    expect(asked.map(({ view }) => view.start)).toEqual([375, 355]);
    expect(drawn.length).toBe(1);
    const next = events();
    await answer(1, next);
    expect(drawn[1]).toBe(next);
  });

  test("kept are a few, the first picture whatever came later", async () => {
    const { loader, asked, drawn, answer, events } = rig();
    const first = events();
    loader.add(want(0, 1000), first);
    for (let i = 0; i < 20; i++) {
      loader.want(want(10 * i, 10 * i + 1));
      await answer(i, events());
    }
    loader.want(want(0, 1000));
    expect(drawn.at(-1)).toBe(first);
    loader.want(want(190, 191));
    expect(asked.length).toBe(20);
    loader.want(want(10, 11));
    expect(asked.length).toBe(21);
  });

  test("that come late are not drawn over what shows all that is looked at by then", async () => {
    const { loader, asked, drawn, answer, events } = rig();
    loader.add(want(0, 1000), events());
    loader.want(want(300, 600));
    loader.want(want(0, 1000));
    await answer(0, events());
    expect(drawn).toEqual([]);
    loader.want(want(310, 610));
    expect([asked.length, drawn.length]).toEqual([1, 1]);
    // Of what nothing shows yet, a part is better than none.
    loader.want(want(700, 720));
    loader.want(want(703, 733));
    await answer(1, events());
    expect([asked.length, drawn.length]).toEqual([3, 2]);
  });

  test("at the ends of everything need no margin", async () => {
    const { loader, asked, answer, events } = rig();
    loader.want(want(0, 100));
    await answer(0, events());
    loader.want(want(10, 110));
    loader.want(want(0, 100));
    expect(asked.length).toBe(1);
  });

  test("of which nothing was left out serve at any zoom", async () => {
    const { loader, asked, answer, events } = rig(false);
    loader.want(want(0, 1000));
    await answer(0, events());
    loader.want(want(500, 501));
    expect(asked.length).toBe(1);
  });

  test("with other lanes in view are asked for again", async () => {
    const { loader, asked, answer, events } = rig();
    loader.want(want(0, 100, [0, 10]));
    await answer(0, events());
    loader.want(want(0, 100, [2, 8]));
    expect(asked.length).toBe(1);
    loader.want(want(0, 100, [5, 15]));
    expect(asked.length).toBe(2);
  });

  test("around are fetched when nothing else is to be done, and not drawn", async () => {
    const { loader, asked, drawn, answer, events } = rig();
    loader.want(want(400, 600));
    for (let i = 0; i < 6; i++) {
      if (asked.length > i) await answer(i, events());
      await vi.advanceTimersByTimeAsync(1000);
    }
    // Nearer, later, earlier, and further off: then there is nothing left to fetch.
    expect(asked.map(({ view }) => [view.start, view.end])).toEqual([
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
      loader.want(want(start, end));
    }
    expect(asked.length).toBe(5);
    expect(drawn.length).toBe(5);
  });

  test("are forgotten when something else is lit", async () => {
    const { loader, asked, drawn, answer, events } = rig();
    loader.want(want(0, 100));
    loader.forget();
    loader.want(want(0, 100));
    await answer(0, events());
    expect(drawn).toEqual([]);
    await answer(1, events());
    expect(asked.length).toBe(2);
    expect(drawn.length).toBe(1);
  });
});

describe("silence", () => {
  test("is met by asking once more, then told, and over with the first answer", async () => {
    const { loader, asked, said, drawn, answer, events } = rig();
    loader.want(want(0, 100));
    await vi.advanceTimersByTimeAsync(2100);
    expect(asked.length).toBe(2);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asked.length).toBe(2);
    expect(said.at(-1)).toMatch(/no answer from Python/);
    await answer(1, events());
    expect(said.at(-1)).toBe("");
    expect(drawn.length).toBe(1);
  });

  test("asks for what is wanted by then", async () => {
    const { loader, asked } = rig();
    loader.want(want(0, 100));
    loader.want(want(500, 600));
    await vi.advanceTimersByTimeAsync(2100);
    expect(asked[1].view.start).toBe(475);
  });

  test("of a request that fails is told in Python's words", async () => {
    const { loader, said, answer } = rig();
    loader.want(want(0, 100));
    await answer(0, new Error("ValueError: no"));
    expect(said.at(-1)).toBe("ValueError: no");
  });
});
