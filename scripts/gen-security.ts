import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { methods } from "../src/api/methods.ts";
import type { Method, MethodName } from "../src/api/methods.ts";
import { roles } from "../src/pki/identity.ts";

// Writes the table of methods × roles into docs/security.md from the table that the controllers obey.

const file = join(import.meta.dirname, "../docs/security.md");
const [begin, end] = ["<!-- methods: made by scripts/gen-security.ts -->", "<!-- /methods -->"];

/** The table as Markdown, one row a method. */
export function methodsTable(): string {
  const rows = (Object.keys(methods) as MethodName[]).map((name) => {
    const method: Method = methods[name];
    const notes = [
      method.ownNodeOnly === true ? "own id only" : "",
      method.approvedOnly === true ? "approved only" : "",
      method.whileRejected === true ? "rejected too" : "",
      method.whileJoining === true ? "while joining" : "",
    ].filter((note) => note !== "");
    const cells = roles.map((role) => (method.roles.includes(role) ? "yes" : ""));
    return [`\`${name}\``, `\`${method.verb} ${method.path}\``, ...cells, notes.join(", ")];
  });
  const all = [["method", "request", ...roles, "a node, a controller"], ...rows];
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? [];
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`;
  return [line(all[0] ?? []), line(widths.map((width) => "-".repeat(width))), ...all.slice(1).map(line)].join("\n");
}

/** The page with its table made anew. */
export function renewPage(page: string): string {
  const [before = "", rest = ""] = page.split(begin);
  const [, after = ""] = rest.split(end);
  return `${before}${begin}\n\n${methodsTable()}\n\n${end}${after}`;
}

if (import.meta.main) writeFileSync(file, renewPage(readFileSync(file, "utf8")));
