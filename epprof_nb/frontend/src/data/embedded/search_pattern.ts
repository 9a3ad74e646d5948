// Checks and compilation of regular expressions typed by the user.

const CHARACTERS = 400;
const NAME_CHARACTERS = 300;
const REPEATS = 4;
const BUDGET_MS = 400;

/**
 * Compile a pattern into a test of names; it is case-sensitive if it has a capital letter.
 *
 * Throws an Error with a message for the user, and so does the test when it has taken too long. A
 * browser cannot interrupt a search, so nested repetition is refused.
 */
export function compile(pattern: string, ignoreCase?: boolean): (name: string) => boolean {
  if (pattern.length > CHARACTERS) {
    throw new Error(`A pattern has at most ${CHARACTERS} characters.`);
  }
  const { nested, repeats } = shape(pattern);
  if (nested) throw new Error("A repeated group must not contain repeats or alternatives.");
  if (repeats > REPEATS) throw new Error(`A pattern repeats at most ${REPEATS} times.`);
  // A capital after a backslash is a character class, not a letter to match.
  const capitals = /[A-Z]/.test(pattern.replace(/\\./g, ""));
  let expression: RegExp;
  try {
    expression = new RegExp(pattern, (ignoreCase ?? !capitals) ? "i" : "");
  } catch {
    throw new Error("Not a regular expression.");
  }
  const until = performance.now() + BUDGET_MS;
  return (name) => {
    if (performance.now() > until) throw new Error("The search takes too long: use fewer repeats.");
    return expression.test(name.slice(0, NAME_CHARACTERS));
  };
}

/** Match all names: 1 for each that matches. Throws an Error if it takes too long. */
export function matches(names: string[], pattern: string): Uint8Array {
  if (!pattern) return new Uint8Array(names.length);
  const test = compile(pattern);
  return Uint8Array.from(names, (name) => (test(name) ? 1 : 0));
}

/** Whether a repeated group contains repeats or alternatives, and the number of repeats. */
function shape(pattern: string): { nested: boolean; repeats: number } {
  const plain = pattern.replace(/\\./g, "e").replace(/\[\^?\]?[^\]]*\]/g, "c");
  const open: boolean[] = [];
  let nested = false;
  let repeats = 0;
  let closed = false;
  let risky = false;
  const mark = (): void => {
    if (open.length) open[open.length - 1] = true;
  };
  for (let i = 0; i < plain.length; i++) {
    const sign = plain[i];
    if (sign === "(") {
      open.push(false);
      // The question mark of (?: or (?= is not a repeat.
      if (plain[i + 1] === "?") i++;
    } else if (sign === ")") {
      closed = true;
      risky = open.pop() ?? false;
      if (risky) mark();
      continue;
    } else if (sign === "|") mark();
    else if ("*+{".includes(sign)) {
      repeats++;
      if (closed && risky) nested = true;
      mark();
    }
    closed = false;
  }
  return { nested, repeats };
}
