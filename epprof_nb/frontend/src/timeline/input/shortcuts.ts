// The keyboard's commands, each with its help text: what `?` lists is what works.

import { Held } from "./key_repeat.ts";

export interface Command {
  /**
   * Keys that start it, as `KeyboardEvent.key` names them in lower case; "shift+", "alt+" and
   * "ctrl+" (Cmd on a Mac) in front, in this order: "f", "?", "shift+f", "alt+arrowleft". Shift
   * is not named for signs that need it, such as "?".
   */
  keys: string[];
  /** What it does, for the help: "Zoom in". */
  help: string;
  /** Heading of the help that it stands under. */
  group: string;
  /** Runs it; false where there was nothing to do, so that the key is left to others. */
  run(): unknown;
  /** Goes on while the key is held down, every frame, with the milliseconds gone by. */
  hold?(ms: number): void;
}

/** What the pointer can do, for the help alone. */
export interface Gesture {
  gesture: string;
  help: string;
  group: string;
}

export class Keys {
  readonly gestures: Gesture[] = [];
  readonly #commands: Command[] = [];
  readonly #held = new Held();
  readonly #down = new Set<string>();

  /** Adds commands; of two with the same key the later has the first say. The result takes them away. */
  add(...commands: Command[]): () => void {
    this.#commands.push(...commands);
    return () => {
      for (const command of commands) this.#commands.splice(this.#commands.indexOf(command), 1);
    };
  }

  /** Adds gestures to the help. */
  tell(...gestures: Gesture[]): void {
    this.gestures.push(...gestures);
  }

  get commands(): readonly Command[] {
    return this.#commands;
  }

  /** Runs what a key means; true where it meant something. */
  press(event: KeyboardEvent): boolean {
    const key = keyName(event);
    this.#down.add(event.key.toLowerCase());
    for (const command of [...this.#commands].reverse()) {
      if (!command.keys.includes(key)) continue;
      const { hold } = command;
      // While a key is held the frames count, not how often the keyboard repeats it.
      if (hold && event.repeat) return true;
      if (command.run() === false) continue;
      if (hold) this.#held.start(event.key.toLowerCase(), (ms) => hold(ms));
      return true;
    }
    return false;
  }

  /** A key was let go. */
  release(event: KeyboardEvent): void {
    this.#down.delete(event.key.toLowerCase());
    this.#held.stop(event.key.toLowerCase());
  }

  /** The focus has gone elsewhere: nothing is held any more. */
  releaseAll(): void {
    this.#down.clear();
    this.#held.stopAll();
  }

  /** Whether a key is down now, by its name without Shift and the like. */
  isDown(key: string): boolean {
    return this.#down.has(key);
  }
}

export function keyName(event: KeyboardEvent): string {
  const key = event.key.toLowerCase();
  // A sign such as "?" already tells that Shift was down, a letter does not.
  const plainSign = key.length === 1 && key.toUpperCase() === key;
  const shift = event.shiftKey && !plainSign ? "shift+" : "";
  const alt = event.altKey ? "alt+" : "";
  const ctrl = event.ctrlKey || event.metaKey ? "ctrl+" : "";
  return `${shift}${alt}${ctrl}${key === " " ? "space" : key}`;
}

/** Whether a key belongs to what has the focus: a field that takes text. */
export function isTyping(event: Event): boolean {
  const target = event.composedPath()[0];
  return (
    target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]")
  );
}
