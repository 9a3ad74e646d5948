// The keyboard's commands, each with its help text: what `?` lists is what works.

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
  /** Runs it; false where there was nothing to do, so that the key is left to the page. */
  run(): unknown;
}

export class Keys {
  readonly #commands: Command[] = [];

  /** Adds commands; of two with the same key the later wins. The result takes them away. */
  add(...commands: Command[]): () => void {
    this.#commands.push(...commands);
    return () => {
      for (const command of commands) this.#commands.splice(this.#commands.indexOf(command), 1);
    };
  }

  get commands(): readonly Command[] {
    return this.#commands;
  }

  /** Runs what a key means; true where it meant something. */
  press(event: KeyboardEvent): boolean {
    const key = keyName(event);
    const command = [...this.#commands].reverse().find(({ keys }) => keys.includes(key));
    return command !== undefined && command.run() !== false;
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
