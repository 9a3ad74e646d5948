import { expect, test } from "vitest";
import { cut } from "../src/cut.ts";

/** Every letter is as wide as ten pixels. */
const measure = (text: string): number => text.length * 10;

test("a name that fits stays whole", () => {
  expect(cut("loss.backward()", 150, true, measure)).toBe("loss.backward()");
  expect(cut("loss.backward()", 150, false, measure)).toBe("loss.backward()");
});

test("with little room a statement keeps its beginning", () => {
  expect(cut("losses.append(loss.item())", 120, true, measure)).toBe("losses.appe…");
  expect(cut("loss.backward()", 80, true, measure)).toBe("loss.ba…");
  // No stop before the dots that stand for the rest.
  expect(cut("loss.backward()", 60, true, measure)).toBe("loss…");
});

test("with more room a statement keeps both ends", () => {
  expect(cut("losses.append(loss.item()) # the mean", 200, true, measure)).toBe(
    "losses.appen…he mean",
  );
});

test("a kernel keeps both ends however little room there is", () => {
  expect(cut("vectorized_elementwise_kernel_2", 110, false, measure)).toBe("vector…el_2");
});

test("nothing is left where only crumbs would fit", () => {
  expect(cut("loss.backward()", 30, true, measure)).toBe("");
  expect(cut("gemm_kernel", 30, false, measure)).toBe("");
});

test("wide letters make a cut shorter, never wider than its room", () => {
  const uneven = (text: string): number =>
    [...text].reduce((sum, letter) => sum + (letter === "W" ? 20 : 5), 0);
  for (let room = 20; room < 120; room += 7) {
    expect(uneven(cut("WWWWiiiiiiiiiiiiiiii", room, true, uneven))).toBeLessThanOrEqual(room);
  }
});
