import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Model, Talk } from "../../src/data/channel.ts";

type Heard = Parameters<Model["on"]>[1];

function quiet(): { model: Model; sent: { request: number }[]; answer: Heard } {
  const sent: { request: number }[] = [];
  const handlers = new Set<Heard>();
  const model: Model = {
    get: () => undefined,
    set: () => {},
    send: (content) => sent.push(content as { request: number }),
    on: (_, handler) => handlers.add(handler),
    off: (_, handler) => handlers.delete(handler),
  };
  const answer: Heard = (...told) => {
    for (const handler of handlers) handler(...told);
  };
  return { model, sent, answer };
}

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test("a question that was lost is asked again, and silence is told until the answer", async () => {
  const { model, sent, answer } = quiet();
  const talk = new Talk(model);
  const told: boolean[] = [];
  talk.silent = (silent) => told.push(silent);
  const asked = talk.ask({ type: "tree" });
  expect(sent).toHaveLength(1);
  vi.advanceTimersByTime(5_000);
  expect(sent).toHaveLength(2);
  expect(sent[1]).toEqual(sent[0]);
  expect(told).toEqual([true]);
  answer({ request: sent[0]?.request, tree: 7 }, []);
  expect((await asked).content.tree).toBe(7);
  expect(told).toEqual([true, false]);
  vi.advanceTimersByTime(100_000);
  expect(sent).toHaveLength(2);
});

test("a question that is never answered fails in the end, and says why", async () => {
  const { model, sent, answer } = quiet();
  const talk = new Talk(model);
  const asked = talk.ask({ type: "tree" });
  const failed = expect(asked).rejects.toThrow("busy or gone");
  vi.advanceTimersByTime(100_000);
  await failed;
  expect(sent).toHaveLength(2);
  answer({ request: 1 }, []); // too late, and harmless
});

test("a kernel that has ended is silence, no error", () => {
  const { model } = quiet();
  model.send = () => {
    throw new Error("Cannot send");
  };
  const talk = new Talk(model);
  const told: boolean[] = [];
  talk.silent = (silent) => told.push(silent);
  talk.ask({ type: "tree" }).catch(() => {});
  vi.advanceTimersByTime(5_000);
  expect(told).toEqual([true]);
});

test("a talk that has ended hears and says nothing more", async () => {
  const { model, sent, answer } = quiet();
  const talk = new Talk(model);
  const closed = vi.fn();
  talk.listen("close", closed);
  const asked = talk.ask({ type: "tree" });
  const failed = expect(asked).rejects.toThrow("did not answer");
  talk.end();
  await failed;
  vi.advanceTimersByTime(100_000);
  expect(sent).toHaveLength(1);
  answer({ type: "close" }, []);
  expect(closed).not.toHaveBeenCalled();
});
