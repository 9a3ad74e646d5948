import { describe, expect, test } from "vitest";
import { count, duration, percent, shorten, size } from "../../src/base/format.ts";
import { shortKernel } from "../../src/render/event_labels.ts";

describe("numbers have three digits and the unit that fits", () => {
  test.each([
    [0, "0 s"],
    [1, "1 ns"],
    [999, "999 ns"],
    [999.7, "1.00 µs"],
    [12_340, "12.3 µs"],
    [999_600, "1.00 ms"],
    [1_840_000_000, "1.84 s"],
    [123_456_000_000, "123 s"],
    [4_321_000_000_000, "4,321 s"],
    [-1_500, "-1.50 µs"],
  ])("%d ns is %s", (ns, text) => expect(duration(ns)).toBe(text));

  test.each([
    [96, "96 B"],
    [4_000_000, "4.00 MB"],
    [1_200_000_000, "1.20 GB"],
    [999_999, "1.00 MB"],
  ])("%d bytes are %s", (bytes, text) => expect(size(bytes)).toBe(text));

  test("integers keep every digit, beyond 2**53 too", () => {
    expect(count(4212)).toBe("4,212");
    expect(count(9_007_199_254_740_993n)).toBe("9,007,199,254,740,993");
  });

  test("a little is not nothing", () => {
    expect(percent(0.614)).toBe("61.4 %");
    expect(percent(0.0001)).toBe("< 0.1 %");
    expect(percent(0)).toBe("0.0 %");
  });
});

describe("names", () => {
  test("are cut in the middle and keep both ends", () => {
    expect(shorten("abcdefghij", 10)).toBe("abcdefghij");
    expect(shorten("abcdefghijk", 6)).toBe("abc…jk");
    expect(shorten("two\n  lines", 20)).toBe("two lines");
  });
  test("of kernels lose namespaces, templates and arguments", () => {
    expect(shortKernel("void at::native::gemm<float, 4>(int*)")).toBe("gemm");
    expect(shortKernel("void at::(anonymous namespace)::norm<float>(int)")).toBe("norm");
    expect(shortKernel("<script>")).toBe("<script>");
  });
});
