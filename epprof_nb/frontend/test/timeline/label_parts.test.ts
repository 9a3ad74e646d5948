import { describe, expect, test } from "vitest";
import { labelParts } from "../../src/timeline/label_parts.ts";

describe("a label that is cut in the middle", () => {
  const pool = [0, 1, 11].map((i) => `ThreadPoolExecutor-0_${i}`);
  test.each(pool)("%s keeps its end", (text) => {
    const [head, tail] = labelParts(text, pool);
    expect(head + tail).toBe(text);
    expect(pool.filter((other) => other.endsWith(tail))).toEqual([text]);
  });
  test("keeps its number at the beginning", () => {
    const all = ["Thread-3 (_pin_memory_loop)", "Thread-4 (_pin_memory_loop)"];
    expect(labelParts(all[0], all)).toEqual(["Thread-3 (_pin_memo", "ry_loop)"]);
  });
  test("keeps what differs in its middle", () => {
    const all = ["inference-worker-1-of-service", "inference-worker-2-of-service"];
    expect(labelParts(all[1], all)).toEqual(["inference-worker-", "2-of-ser…"]);
  });
  test("is whole if it is short", () => {
    expect(labelParts("main thread", ["main thread", "waits"])).toEqual(["main thread", ""]);
  });
});
