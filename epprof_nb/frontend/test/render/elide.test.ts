import { describe, expect, test } from "vitest";
import { elide } from "../../src/render/elide.ts";

/** Every letter is ten pixels wide. */
const measure = (text: string): number => text.length * 10;

test("a name that fits stays whole", () => {
  expect(elide("loss.backward()", 150, true, measure)).toBe("loss.backward()");
  expect(elide("loss.backward()", 150, false, measure)).toBe("loss.backward()");
});

test("with little room a statement keeps its beginning", () => {
  expect(elide("losses.append(loss.item())", 120, true, measure)).toBe("losses.appe…");
  expect(elide("loss.backward()", 80, true, measure)).toBe("loss.ba…");
  // No dot before the ellipsis.
  expect(elide("loss.backward()", 60, true, measure)).toBe("loss…");
});

test("with more room a statement keeps both ends", () => {
  expect(elide("losses.append(loss.item()) # the mean", 200, true, measure)).toBe(
    "losses.appen…he mean",
  );
});

test("a kernel keeps both ends however little room there is", () => {
  expect(elide("vectorized_elementwise_kernel_2", 110, false, measure)).toBe("vector…el_2");
});

test("the path of a module keeps its end", () => {
  expect(elide("model.blocks.0.attention", 140, true, measure)).toBe("…0.attention");
  expect(elide("model.blocks.0", 30, true, measure)).toBe("…0");
  expect(elide("model.blocks.0.attention", 90, true, measure)).toBe("attention");
  expect(elide("model.blocks.0.attention", 70, true, measure)).toBe("attent…");
});

test("the name of a script keeps its beginning", () => {
  expect(elide("training_script.py", 90, true, measure)).toBe("training…");
});

test("nothing is left if only fragments would fit", () => {
  expect(elide("loss.backward()", 30, true, measure)).toBe("");
  expect(elide("gemm_kernel", 30, false, measure)).toBe("");
});

test("wide letters leave fewer of them, never a text wider than its room", () => {
  const uneven = (text: string): number =>
    [...text].reduce((sum, letter) => sum + (letter === "W" ? 20 : 5), 0);
  for (let room = 20; room < 120; room += 7) {
    expect(uneven(elide("WWWWiiiiiiiiiiiiiiii", room, true, uneven))).toBeLessThanOrEqual(room);
  }
});

describe("among others", () => {
  const steps = ["loss = criterion(out, y)", "loss.backward()", "losses.append(loss.item())"];

  test("a statement keeps a part that no other has where there is room for one", () => {
    for (const room of [80, 100, 120]) {
      const shown = steps.map((text) => elide(text, room, true, measure, steps));
      for (const [i, part] of shown.entries()) {
        if (!part || part === steps[i]) continue;
        const [head, tail] = part.split("…");
        const meant = steps.filter((text) => text.startsWith(head) && text.endsWith(tail));
        expect(meant).toEqual([steps[i]]);
      }
      expect(new Set(shown).size).toBe(3);
    }
  });
  test("the distinguishing part is kept", () => {
    const pair = ["train_loss_first", "train_loss_second"];
    expect(pair.map((text) => elide(text, 80, true, measure, pair))).toEqual([
      "train…st",
      "train…nd",
    ]);
    const ends = ["ab_gemm_kernel_x", "cd_gemm_kernel_x"];
    expect(ends.map((text) => elide(text, 80, false, measure, ends))).toEqual([
      "ab_ge…_x",
      "cd_ge…_x",
    ]);
  });
  test("a name is never cut at its beginning, even if others look the same then", () => {
    const alike = ["matmul_relu", "matmul_silu", "matmul_t", "matmul"];
    for (const room of [40, 50, 60, 70, 80, 90, 100])
      for (const text of alike) {
        const shown = elide(text, room, false, measure, alike);
        expect(shown === "" || shown.startsWith("m"), `${shown} of ${text}`).toBe(true);
        if (room >= 60) expect(shown).not.toBe("");
      }
    const tiles = ["implicit_gemm_tn_64x64_relu_kernel", "implicit_gemm_nt_64x64_relu_kernel"];
    expect(elide(tiles[0], 90, false, measure, tiles)).toBe("impli…nel");
    expect(elide(tiles[0], 160, false, measure, tiles)).toBe("implicit_gemm_t…");
  });
  test("the same name twice is not ambiguous", () => {
    const same = ["loss.backward()", "loss.backward()"];
    expect(elide(same[0], 80, true, measure, same)).toBe("loss.ba…");
  });
});

test("punctuation alone is not shown", () => {
  expect(elide("y = (-x) + (-z)", 50, true, measure)).toBe("");
  expect(elide("f(((((((((x)))))))))", 60, true, measure)).toBe("");
});
