import { describe, expect, test } from "vitest";
import { Bundle, fromBase64, inflate } from "../../src/data/wire_format.ts";
import { encode } from "../helpers.ts";

describe("decoding", () => {
  test("reverses byte planes and differences", () => {
    const bundle = new Bundle(
      encode(
        {},
        {
          small: { tag: "u8", values: [1, 2, 255] },
          wide: { tag: "f64", values: [0.5, 2 ** 53, -1] },
          steps: { tag: "i32", values: [0, 5, -7], from: 1_000_000 },
          huge: { tag: "i64", values: [2n ** 62n, -1n] },
        },
      ),
    );
    expect([...(bundle.column("small") ?? [])]).toEqual([1, 2, 255]);
    expect([...(bundle.column("wide") ?? [])]).toEqual([0.5, 2 ** 53, -1]);
    expect([...(bundle.column("steps") ?? [])]).toEqual([1_000_000, 1_000_005, 999_998]);
    expect([...(bundle.column("huge") ?? [])]).toEqual([2n ** 62n, -1n]);
    expect(bundle.column("none")).toBeUndefined();
  });
  test("reads plain columns relative to their minimum", () => {
    const columns = {
      times: ["u16", 0, 2, 1e12],
      codes: ["i8", 4, 3, null],
      wide: ["f64", 7, 1, null],
      huge: ["i64", 15, 1, null],
    };
    const text = new TextEncoder().encode(JSON.stringify({ plain: true, columns }));
    const bytes = new Uint8Array(4 + text.length + 23);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, text.length, true);
    bytes.set(text, 4);
    const at = 4 + text.length;
    view.setUint16(at + 2, 40_000, true);
    view.setInt8(at + 5, -1);
    view.setFloat64(at + 7, 2 ** 53, true);
    view.setBigInt64(at + 15, 2n ** 62n, true);
    const bundle = new Bundle(bytes);
    expect([...(bundle.column("times") ?? [])]).toEqual([1e12, 1e12 + 40_000]);
    expect([...(bundle.column("codes") ?? [])]).toEqual([0, -1, 0]);
    expect([...(bundle.column("wide") ?? [])]).toEqual([2 ** 53]);
    expect([...(bundle.column("huge") ?? [])]).toEqual([2n ** 62n]);
  });
  test("reverses base64 and zlib", async () => {
    const text = "eJzLSM3JyQcABiwCFQ=="; // "hello", by Python's zlib
    expect(new TextDecoder().decode(await inflate(fromBase64(text)))).toBe("hello");
  });
});
