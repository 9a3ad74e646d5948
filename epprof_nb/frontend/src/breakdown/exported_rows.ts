// Export of the shown rows as text: CSV, Markdown, Python.

import type { SelectionQuery } from "../data/selection_queries.ts";
import { type Column, formatCell, isText, label } from "./column_specs.ts";

/** Rows as CSV, with the DataFrame's column names and integers without units. */
export function csv(columns: Column[], rows: number[]): string {
  const field = (value: unknown, text: boolean): string => {
    let plain = value === null ? "" : String(value);
    // A spreadsheet would evaluate a name that starts like a formula.
    if (text && /^[=+\-@\t\r]/.test(plain)) plain = `'${plain}`;
    return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  };
  const lines = rows.map((i) =>
    columns.map(({ name, values }) => field(values[i], isText(name))).join(","),
  );
  return [columns.map(({ name }) => name).join(","), ...lines, ""].join("\r\n");
}

/** Rows as a Markdown table, formatted as on screen. */
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
    ...rows.map((i) => row(columns.map(({ name, values }) => safe(formatCell(name, values[i]))))),
    "",
  ].join("\n");
}

/** Names of this length were shortened in the payload, so they match no row. */
const SHORTENED = 600;
const FRAMES = { op: "prof.ops", api: "prof.api_calls", act: "prof.activities" };

/** Python expression for the rows of a query; null if there is none. */
export function python(query: SelectionQuery | null): string | null {
  if (query?.what !== "where") return null;
  const tests: string[] = [];
  for (const [column, value] of Object.entries(query.equals)) {
    const values = Array.isArray(value) ? value : [value];
    if (values.some((one) => typeof one === "string" && one.length >= SHORTENED)) return null;
    const literals = values.map((one) =>
      typeof one === "string" ? pythonString(one) : String(one),
    );
    const isMissing = `rows["${column}"].isna()`;
    if (Array.isArray(value)) {
      const isIn = `rows["${column}"].isin([${literals.filter((one) => one !== "null").join(", ")}])`;
      tests.push(values.includes(null) ? `(${isIn} | ${isMissing})` : isIn);
    } else if (value === null) tests.push(isMissing);
    else tests.push(`(rows["${column}"] == ${literals[0]})`);
  }
  return `${FRAMES[query.prefix]}[lambda rows: ${tests.join(" & ")}]`;
}

/** Python string literal in ASCII, so that a name cannot disguise the code. */
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
