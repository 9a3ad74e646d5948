import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Channel, type Model } from "../../src/data/channel.ts";

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
  const answer: Heard = (...silences) => {
    for (const handler of handlers) handler(...silences);
  };
  return { model, sent, answer };
}

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test("a lost request is repeated, and silence is reported until the reply", async () => {
  const { model, sent, answer } = quiet();
  const channel = new Channel(model);
  const silences: boolean[] = [];
  channel.onSilence = (silent) => silences.push(silent);
  const reply = channel.request({ type: "tree" });
  expect(sent).toHaveLength(1);
  vi.advanceTimersByTime(5_000);
  expect(sent).toHaveLength(2);
  expect(sent[1]).toEqual(sent[0]);
  expect(silences).toEqual([true]);
  answer({ request: sent[0]?.request, tree: 7 }, []);
  expect((await reply).content.tree).toBe(7);
  expect(silences).toEqual([true, false]);
  vi.advanceTimersByTime(100_000);
  expect(sent).toHaveLength(2);
});

test("a request without a reply fails eventually and says why", async () => {
  const { model, sent, answer } = quiet();
  const channel = new Channel(model);
  const reply = channel.request({ type: "tree" });
  const failed = expect(reply).rejects.toThrow("busy or has stopped");
  vi.advanceTimersByTime(100_000);
  await failed;
  expect(sent).toHaveLength(2);
  answer({ request: 1 }, []); // too late, and harmless
});

test("a kernel that has ended causes silence, no error", () => {
  const { model } = quiet();
  model.send = () => {
    throw new Error("Cannot send");
  };
  const channel = new Channel(model);
  const silences: boolean[] = [];
  channel.onSilence = (silent) => silences.push(silent);
  channel.request({ type: "tree" }).catch(() => {});
  vi.advanceTimersByTime(5_000);
  expect(silences).toEqual([true]);
});

test("a closed channel receives and sends nothing", async () => {
  const { model, sent, answer } = quiet();
  const channel = new Channel(model);
  const closed = vi.fn();
  channel.on("close", closed);
  const reply = channel.request({ type: "tree" });
  const failed = expect(reply).rejects.toThrow("did not answer");
  channel.close();
  await failed;
  vi.advanceTimersByTime(100_000);
  expect(sent).toHaveLength(1);
  answer({ type: "close" }, []);
  expect(closed).not.toHaveBeenCalled();
});
