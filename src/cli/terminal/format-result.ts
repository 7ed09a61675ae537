import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { detectCi, escapeForCi } from "#tui/ci.ts";
import type { ResultFormat } from "../options.ts";
import { formatTable } from "./format-table.ts";
import { printJson } from "./print-json.ts";

/** A result in the format of `-o`; `draw` makes the table, which is escaped so that a CI finds no commands in it. */
export function formatResult(value: unknown, output: ResultFormat | "text", draw: (wide: boolean) => string): string {
  if (output === "json") return `${printJson(value, 2)}\n`;
  if (output === "yaml") return printYaml(value);
  return escapeForCi(detectCi(process.env), draw(output === "wide"));
}

/** Prints a result in the format of `-o`. */
export function printResult(value: unknown, output: ResultFormat | "text", draw?: (wide: boolean) => string): void {
  process.stdout.write(formatResult(value, output, draw ?? (() => "")));
}

/** Whether a format of `-o` is text for people, not data. */
export function isForPeople(output: ResultFormat): boolean {
  return output === "table" || output === "wide";
}

/** Prints a result in the format of `-o`; the table has these rows, or is the text `none` without a row. */
export function printRows(
  value: unknown,
  output: ResultFormat,
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  none?: string,
): void {
  const draw = () => (rows.length === 0 && none !== undefined ? `${none}\n` : formatTable(heading, rows));
  printResult(value, output, draw);
}

/** A result in a series, as a line of JSON or a document of YAML. */
export function formatOne(value: unknown, output: "json" | "yaml"): string {
  return output === "json" ? `${printJson(value)}\n` : `---\n${printYaml(value)}`;
}
