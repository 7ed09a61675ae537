import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { methods } from "../src/api/methods.ts";
import type { Method, MethodName } from "../src/api/methods.ts";
import { roles } from "../src/pki/identity.ts";

// Writes the generated parts of docs/security.md: methods × roles that the controllers obey, and the tests that name a
// promise.

const root = join(import.meta.dirname, "..");
const file = join(root, "docs/security.md");
const promises = [
  "<!-- promises: the lines of tests are made by scripts/gen-security.ts -->",
  "<!-- /promises -->",
] as const;
const [begin, end] = ["<!-- methods: made by scripts/gen-security.ts -->", "<!-- /methods -->"];

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
  return tableOf([["method", "request", ...roles, "a node, a controller"], ...rows]);
}

/** Rows, of which the first is the head, as Markdown that Prettier leaves alone. */
export function tableOf(all: readonly (readonly string[])[]): string {
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? [];
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`;
  return [line(all[0] ?? []), line(widths.map((width) => "-".repeat(width))), ...all.slice(1).map(line)].join("\n");
}

/** The test files by the number of a promise that a test's name has. */
export function testsByPromise(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, Set<string>>();
  for (const name of readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" }).toSorted()) {
    const titles = name.endsWith(".ts") ? /\b(?:it|describe)\(\s*(["'`][^\n]*)/g : /^ {2}(\S[^\n]*):/gm;
    if (!name.endsWith(".ts") && !name.startsWith("modules/")) continue;
    const text = readFileSync(join(root, "test", name), "utf8");
    for (const [, title = ""] of text.matchAll(titles))
      for (const [number] of title.matchAll(/\b[SF]-\d+\b/g))
        found.set(number, (found.get(number) ?? new Set()).add(name));
  }
  return new Map([...found].map(([number, files]) => [number, [...files]]));
}

/** The list of promises with the lines of their tests made anew. */
function withTests(list: string): string {
  const tests = testsByPromise();
  return list
    .replaceAll(/^ {2}Tests: .*\n/gm, "")
    .replaceAll(/^- \*\*([SF]-\d+)\*\* .*\n(?: {2}.*\n)*/gm, (item, number: string) => {
      const names = (tests.get(number) ?? []).map((name) => `\`${name.replace(/(\.test\.ts|\.yaml)$/, "")}\``);
      return names.length === 0 ? item : `${item}  Tests: ${names.join(", ")}\n`;
    });
}

/** The page with its table and the tests of its promises made anew. */
export function renewPage(page: string): string {
  return between(
    between(page, [begin, end], () => `\n\n${methodsTable()}\n\n`),
    promises,
    withTests,
  );
}

/** The page with the text between two marks made anew. */
export function between(page: string, [from, to]: readonly [string, string], make: (text: string) => string): string {
  const [before = "", rest = ""] = page.split(from);
  const [text = "", after = ""] = rest.split(to);
  return `${before}${from}${make(text)}${to}${after}`;
}

if (import.meta.main) writeFileSync(file, renewPage(readFileSync(file, "utf8")));
