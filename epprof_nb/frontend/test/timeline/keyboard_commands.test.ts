import { describe, expect, test } from "vitest";
import { History } from "../../src/base/history.ts";
import { ticks } from "../../src/base/time_scale.ts";
import { keyLabel } from "../../src/timeline/input/help_dialog.ts";
import { Pinch } from "../../src/timeline/input/pinch.ts";
import { type Command, keyName, Shortcuts } from "../../src/timeline/input/shortcut_registry.ts";
import { rulerLabels } from "../../src/timeline/ruler.ts";

const press = (key: string, more: Partial<KeyboardEvent> = {}): KeyboardEvent =>
  ({
    key,
    shiftKey: false,
    altKey: false,
    ctrlKey: false,
    metaKey: false,
    ...more,
  }) as KeyboardEvent;

describe("the ruler", () => {
  const labels = (start: number, end: number): ReturnType<typeof rulerLabels> => {
    const { step, times } = ticks({ start, end }, 900);
    return rulerLabels(times, step, { start, end });
  };
  test("is relative to the profile's start", () => {
    expect(labels(0, 9e6)).toEqual({
      base: null,
      labels: ["0 ms", ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((ms) => `${ms} ms`)],
    });
  });
  test("is relative to a base if the window is small and late", () => {
    const deep = labels(1_234_012_300, 1_234_052_300);
    expect(deep.base).toBe("1.2340 s");
    expect(deep.labels[0]).toBe("+15 µs");
  });
  test.each([
    [1e9, 900],
    [99e9, 40],
    [5e12, 20],
    [999_999_990, 30],
  ])("distinguishes neighbours at %d ns in a window of %d ns", (start, length) => {
    const { labels: all } = labels(start, start + length);
    expect(all.length).toBeGreaterThan(2);
    expect(new Set(all).size).toBe(all.length);
  });
});

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

describe("keys", () => {
  const ran: string[] = [];
  const command = (keys: string[], name: string, answer?: boolean): Command => ({
    keys,
    help: name,
    group: "",
    run: () => {
      ran.push(name);
      return answer;
    },
  });
  test.each([
    [press("W"), "w"],
    [press("F", { shiftKey: true }), "shift+f"],
    [press("?", { shiftKey: true }), "?"],
    [press("ArrowLeft", { altKey: true }), "alt+arrowleft"],
    [press("f", { metaKey: true }), "ctrl+f"],
    [press("Backspace", { shiftKey: true }), "shift+backspace"],
  ])("have names", (event, name) => expect(keyName(event)).toBe(name));
  test("run the command added last, or the one before if it had nothing to do", () => {
    const keys = new Shortcuts();
    keys.add(command(["x"], "first"));
    const remove = keys.add(command(["x"], "idle", false));
    expect(keys.press(press("x"))).toBe(true);
    expect(ran.splice(0)).toEqual(["idle", "first"]);
    remove();
    keys.press(press("x"));
    expect(ran.splice(0)).toEqual(["first"]);
    expect(keys.press(press("y"))).toBe(false);
  });
  test("are down until released", () => {
    const keys = new Shortcuts();
    keys.press(press("M", { shiftKey: true }));
    expect(keys.isDown("m")).toBe(true);
    keys.release(press("m"));
    expect(keys.isDown("m")).toBe(false);
  });
  test("are labelled as on the keyboard", () => {
    expect(keyLabel("alt+arrowleft")).toBe("Alt ←");
    expect(keyLabel("+")).toBe("+");
    expect(keyLabel("w")).toBe("W");
  });
});

describe("two fingers", () => {
  test("that move apart zoom in about their middle", () => {
    const pinch = new Pinch();
    pinch.down(1, 100);
    expect(pinch.move(1, 110)).toBeNull();
    pinch.down(2, 210);
    expect(pinch.active).toBe(true);
    expect(pinch.move(2, 310)).toEqual({ factor: 0.5, x: 210, moved: 50 });
    pinch.up(1);
    expect(pinch.move(2, 400)).toBeNull();
  });
  test("that move together pan", () => {
    const pinch = new Pinch();
    pinch.down(1, 0);
    pinch.down(2, 100);
    const first = pinch.move(1, 20);
    const second = pinch.move(2, 120);
    expect((first?.moved ?? 0) + (second?.moved ?? 0)).toBe(20);
    expect((first?.factor ?? 0) * (second?.factor ?? 0)).toBeCloseTo(1);
  });
});
