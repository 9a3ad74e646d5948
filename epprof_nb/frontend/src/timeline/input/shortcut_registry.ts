// Keyboard commands with their help texts: the help lists exactly what works.

import { KeyRepeat } from "./key_repeat.ts";

export interface Command {
  /**
   * Keys that run it, as `KeyboardEvent.key` names them in lower case, prefixed with "shift+",
   * "alt+" and "ctrl+" (Cmd on a Mac) in this order: "f", "?", "shift+f", "alt+arrowleft". Shift is
   * not named for characters that need it, such as "?".
   */
  keys: string[];
  /** Help text, such as "Zoom in". */
  help: string;
  /** Heading in the help dialog. */
  group: string;
  /** Run it. Returns false if there was nothing to do; the key is then passed on. */
  run(): unknown;
  /** Called every frame while the key is held, with the milliseconds elapsed. */
  hold?(ms: number): void;
}

/** Pointer gesture, for the help only. */
export interface Gesture {
  gesture: string;
  help: string;
  group: string;
}

export class Shortcuts {
  readonly gestures: Gesture[] = [];
  readonly #commands: Command[] = [];
  readonly #repeat = new KeyRepeat();
  readonly #down = new Set<string>();

  /**
   * Add commands; of two with the same key, the later one runs first. Returns a function that
   * removes them.
   */
  add(...commands: Command[]): () => void {
    this.#commands.push(...commands);
    return () => {
      for (const command of commands) this.#commands.splice(this.#commands.indexOf(command), 1);
    };
  }

  /** Add gestures to the help. */
  addGestures(...gestures: Gesture[]): void {
    this.gestures.push(...gestures);
  }

  get commands(): readonly Command[] {
    return this.#commands;
  }

  /** Run the command of a key. Returns whether there was one. */
  press(event: KeyboardEvent): boolean {
    const key = keyName(event);
    this.#down.add(event.key.toLowerCase());
    for (const command of [...this.#commands].reverse()) {
      if (!command.keys.includes(key)) continue;
      const { hold } = command;
      // While a key is held, frames count instead of keyboard repeats.
      if (hold && event.repeat) return true;
      if (command.run() === false) continue;
      if (hold) this.#repeat.start(event.key.toLowerCase(), (ms) => hold(ms));
      return true;
    }
    return false;
  }

  /** Handle the release of a key. */
  release(event: KeyboardEvent): void {
    this.#down.delete(event.key.toLowerCase());
    this.#repeat.stop(event.key.toLowerCase());
  }

  /** Release all keys, because the focus was lost. */
  releaseAll(): void {
    this.#down.clear();
    this.#repeat.stopAll();
  }

  /** Whether a key is down, by its name without modifiers. */
  isDown(key: string): boolean {
    return this.#down.has(key);
  }
}

export function keyName(event: KeyboardEvent): string {
  const key = event.key.toLowerCase();
  // A character such as "?" implies Shift, a letter does not.
  const plainSign = key.length === 1 && key.toUpperCase() === key;
  const shift = event.shiftKey && !plainSign ? "shift+" : "";
  const alt = event.altKey ? "alt+" : "";
  const ctrl = event.ctrlKey || event.metaKey ? "ctrl+" : "";
  return `${shift}${alt}${ctrl}${key === " " ? "space" : key}`;
}

/** Whether the focused element takes text input. */
export function isTyping(event: Event): boolean {
  const target = event.composedPath()[0];
  return (
    target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]")
  );
}
