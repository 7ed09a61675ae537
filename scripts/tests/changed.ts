import { spawnSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { root, suiteOf, suites } from "./suites.ts";

/** The effect of changed files on the tests. */
export interface Change {
  /** The test files that the change can break. */
  readonly tests: ReadonlySet<string>;
  /** Messages: how many files of the suites `names` the change can break, and how many of other suites. */
  readonly leftOut: (names: readonly string[]) => string[];
}

/** Tests that read whole folders: their imports do not show which files they read. */
const readers: readonly { readonly changed: RegExp; readonly tests: RegExp }[] = [
  { changed: /\.md$|^docs\//, tests: /^test\/unit\/docs\// },
  {
    changed: /^(states|orchestrate|roster|templates|examples)\//,
    tests: /^test\/unit\/(docs|shipped)|^test\/lab\/example/,
  },
  { changed: /^test\/modules\//, tests: /^test\/unit\/(engine\/)?modules/ },
  { changed: /^test\/planted\//, tests: /^test\/unit\/planted\.test\.ts$/ },
  { changed: /^src\//, tests: /^test\/unit\/(docs\/|dependencies|shipped|planted)/ },
  { changed: /^(package-lock|tsconfig|\.mocharc)\.json$/, tests: /^test\/unit\// },
  { changed: /^package\.json$/, tests: /^test\/unit\/(dependencies|docs)/ },
];

/** The module by which tests start kcore as a process: a change of a file of src or bin counts as a change of it. */
const program = "test/support/program.ts";

/**
 * The effect of the files that are untracked or changed since `ref`. A changed file can break three kinds of tests: those that import it,
 * directly or not, those with its name in a string, and those that `readers` lists.
 */
export function changeOf(ref: string): Change {
  const changed = [...git("diff", "--name-only", ref), ...git("ls-files", "--others", "--exclude-standard")];
  const all = globSync("test/**/*.test.ts", { cwd: root });
  const tests = new Set(brokenBy(changed, readSources()).filter((file) => file.endsWith(".test.ts")));
  for (const { changed: kind, tests: of } of readers)
    if (changed.some((file) => kind.test(file))) for (const test of all) if (of.test(test)) tests.add(test);
  const leftOut = (names: readonly string[]): string[] => {
    const reached = Map.groupBy(tests, suiteOf);
    const others = [...reached].filter(([suite]) => !names.includes(suite));
    const kept = [...tests].filter((file) => names.includes(suiteOf(file))).length;
    const wanted = all.filter((file) => names.includes(suiteOf(file))).length;
    return [
      `${changed.length} files changed since ${ref}: ${kept} of ${wanted} test files of ${names.join(", ")} can break by it`,
      ...others
        .filter(([suite]) => suite in suites)
        .map(([suite, files]) => `left out: ${files.length} files of ${suite} that can break by it, too`),
    ];
  };
  return { tests, leftOut };
}

/** The changed files of `sources`, and all files that import a changed file, directly or not, or hold its name in a string. */
export function brokenBy(changed: readonly string[], sources: ReadonlyMap<string, string>): string[] {
  const importers = new Map<string, string[]>();
  for (const [file, text] of sources)
    for (const imported of importsOf(file, text)) importers.set(imported, [...(importers.get(imported) ?? []), file]);
  const reached = new Set(changed.filter((file) => sources.has(file)));
  for (const file of changed) {
    if (file.startsWith("src/") || file.startsWith("bin/")) reached.add(program);
    const name = basename(file);
    for (const [source, text] of sources)
      if (text.includes(`/${name}"`) || text.includes(`"${name}"`)) reached.add(source);
  }
  for (const file of reached) for (const importer of importers.get(file) ?? []) reached.add(importer);
  return [...reached];
}

function importsOf(file: string, text: string): string[] {
  return [...text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"([.#][^"]+)"/g)].map(([, name = ""]) =>
    name.startsWith("#") ? ownPath(name) : normalize(join(dirname(file), name)),
  );
}

const { imports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { imports: Record<string, string> };

function ownPath(name: string): string {
  const [folder = "", ...rest] = name.split("/");
  return normalize((imports[`${folder}/*`] ?? "").replace("*", rest.join("/")));
}

function readSources(): Map<string, string> {
  const files = globSync("{src,test,scripts,bench}/**/*.ts", { cwd: root });
  return new Map(files.map((file) => [file, readFileSync(join(root, file), "utf8")]));
}

function git(...words: string[]): string[] {
  const { status, stdout, stderr } = spawnSync("git", words, { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`git ${words.join(" ")}: ${stderr.trim()}`);
  return stdout.split("\n").filter((line) => line !== "");
}
