// What is shown as text for other programs: CSV, Markdown, Python.

import type { SelectionQuery } from "../data/queries.ts";
import { type Column, isText, label, show } from "./column_specs.ts";

/** The rows as CSV: the DataFrame's column names, whole numbers without units. */
export function csv(columns: Column[], rows: number[]): string {
  const field = (value: unknown, text: boolean): string => {
    let plain = value === null ? "" : String(value);
    // A spreadsheet would run a name that begins like a formula.
    if (text && /^[=+\-@\t\r]/.test(plain)) plain = `'${plain}`;
    return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  };
  const lines = rows.map((i) =>
    columns.map(({ name, values }) => field(values[i], isText(name))).join(","),
  );
  return [columns.map(({ name }) => name).join(","), ...lines, ""].join("\r\n");
}

/** The rows as a Markdown table, as a reader sees them. */
export function markdown(columns: Column[], rows: number[], by: string): string {
  const safe = (text: string): string =>
    text
      .replace(/\s+/g, " ")
      .replace(/[\\`*_[\]|~$#]/g, "\\$&")
      .replaceAll("&", "&amp;")
      .replaceAll("<", "&lt;")
      .replaceAll(">", "&gt;");
  const row = (cells: string[]): string => `| ${cells.join(" | ")} |`;
  return [
    row(columns.map(({ name }) => label(name, by))),
    row(columns.map(({ name }) => (isText(name) ? ":--" : "--:"))),
    ...rows.map((i) => row(columns.map(({ name, values }) => safe(show(name, values[i]))))),
    "",
  ].join("\n");
}

/** Names as long as this were shortened: no row has them. */
const SHORTENED = 600;
const FRAMES = { op: "prof.ops", api: "prof.api_calls", act: "prof.activities" };

/** Python that selects the wanted rows; null where that cannot be said. */
export function python(query: SelectionQuery): string | null {
  if (query.what !== "where") return null;
  const tests: string[] = [];
  for (const [column, value] of Object.entries(query.equals)) {
    const values = Array.isArray(value) ? value : [value];
    if (values.some((one) => typeof one === "string" && one.length >= SHORTENED)) return null;
    const written = values.map((one) =>
      typeof one === "string" ? pythonString(one) : String(one),
    );
    if (Array.isArray(value)) tests.push(`rows["${column}"].isin([${written.join(", ")}])`);
    else if (value === null) tests.push(`rows["${column}"].isna()`);
    else tests.push(`(rows["${column}"] == ${written[0]})`);
  }
  return `${FRAMES[query.prefix]}[lambda rows: ${tests.join(" & ")}]`;
}

/** A string as Python writes it, in ASCII: nothing in a name changes how code reads. */
export function pythonString(text: string): string {
  const body = [...text].map((letter) => {
    const code = letter.codePointAt(0) ?? 0;
    if (letter === '"' || letter === "\\") return `\\${letter}`;
    if (code >= 0x20 && code < 0x7f) return letter;
    if (code > 0xffff) return `\\U${code.toString(16).padStart(8, "0")}`;
    return `\\u${code.toString(16).padStart(4, "0")}`;
  });
  return `"${body.join("")}"`;
}
