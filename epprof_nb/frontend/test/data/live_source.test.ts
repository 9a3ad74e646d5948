// Messages of the live source, as Python's answers expect them.

import { expect, test } from "vitest";
import type { Channel, Message } from "../../src/data/channel.ts";
import { LiveSource } from "../../src/data/live_source.ts";

const at = { prefix: "act", row: 3, name: "", start: 0, dur: 0, lane: 0, level: 0 } as const;
const query = { what: "search", pattern: "gemm" } as const;

function rig(content: object) {
  const sent: Message[] = [];
  const channel = {
    request: async (message: Message) => {
      sent.push(message);
      return { content, bytes: null };
    },
    send: (message: Message) => sent.push(message),
  } as unknown as Channel;
  return { sent, source: new LiveSource(channel) };
}

test.each([
  ["describe", (s: LiveSource) => s.describe(at), { prefix: "act", row: 3 }, "fields"],
  [
    "related",
    (s: LiveSource) => s.related(at, { start: 1, end: 2 }),
    { prefix: "act", row: 3, window: [1, 2] },
    "related",
  ],
  [
    "by_range",
    (s: LiveSource) => s.byRange({ start: 1.2, end: 8.9 }),
    { start: 1, end: 9 },
    "by_range",
  ],
  [
    "table",
    (s: LiveSource) => s.table("op", { sort: "name", descending: true, pattern: "x" }),
    { by: "op", sort: "name", descending: true, pattern: "x" },
    "table",
  ],
  ["tree", (s: LiveSource) => s.tree("module_tree"), { by: "module_tree" }, "tree"],
  ["source", (s: LiveSource) => s.sourceCode(), {}, "source"],
  ["headline", (s: LiveSource) => s.headline(), {}, "header"],
])("%s is requested and unpacked", async (type, call, message, key) => {
  const { sent, source } = rig({ [key]: "the answer" });
  expect(await call(source)).toBe("the answer");
  expect(sent).toEqual([{ type, ...message }]);
});

test("a position in a selection is sought", async () => {
  const { sent, source } = rig({ count: 2 });
  expect(await source.seek(query, { number: 1 })).toEqual({ count: 2 });
  expect(sent).toEqual([{ type: "seek", selection: query, number: 1 }]);
});

test("the selection is reported with the marked range, and sent with windows", async () => {
  const { sent, source } = rig({});
  source.setSelection(query, { start: 1.2, end: 8.9 });
  source.setSelection(query, null);
  await source.window({ view: { start: 0, end: 10 }, width: 100, lanes: null });
  expect(sent).toEqual([
    { type: "selected", selection: query, time_range: [1, 9] },
    { type: "selected", selection: query, time_range: null },
    { type: "window", selection: query, start: 0, end: 10, width: 100, lanes: null },
  ]);
});
