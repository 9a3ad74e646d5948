import { describe, expect, test } from "vitest";
import { keyLabel } from "../../../src/timeline/input/help_dialog.ts";
import { type Command, keyName, Shortcuts } from "../../../src/timeline/input/shortcut_registry.ts";

const press = (key: string, more: Partial<KeyboardEvent> = {}): KeyboardEvent =>
  ({
    key,
    shiftKey: false,
    altKey: false,
    ctrlKey: false,
    metaKey: false,
    ...more,
  }) as KeyboardEvent;

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
