import { describe, expect, test } from "vitest";
import { History } from "../../src/base/window_history.ts";

describe("the history of windows", () => {
  const view = (start: number) => ({ start, end: start + 10 });
  test("goes back and forward", () => {
    const history = new History(view(0));
    history.note(view(1));
    history.note(view(2));
    history.note(view(2));
    expect(history.back()).toEqual(view(1));
    expect(history.back()).toEqual(view(0));
    expect(history.back()).toBeNull();
    expect(history.forward()).toEqual(view(1));
  });
  test("drops the windows ahead when a new one is added", () => {
    const history = new History(view(0));
    history.note(view(1));
    history.back();
    history.note(view(5));
    expect(history.forward()).toBeNull();
    expect(history.back()).toEqual(view(0));
  });
});
