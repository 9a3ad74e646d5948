import { expect, test } from "vitest";
import { firstSentence } from "../../src/app/notes.ts";

test("the first sentence of a note does not end at any dot", () => {
  expect(
    firstSentence("Runs took 1.41x (2.29 ms -> 3.24 ms). Device times are to be trusted."),
  ).toBe("Runs took 1.41x (2.29 ms -> 3.24 ms).");
  expect(firstSentence("Records lost: 3 kernels in .run() of v1.2")).toBe(
    "Records lost: 3 kernels in .run() of v1.2",
  );
});
