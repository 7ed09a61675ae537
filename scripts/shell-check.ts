/**
 * `npm run shell`: every script that is shipped or used, and every text of sh that a module can make, is parsed by sh and
 * read by shellcheck. Modules are rendered from their documented example and from module-samples.ts; a text in their source
 * that none of these reaches is an error, so nothing is left out unseen.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { parse } from "yaml";
import { registry } from "../src/engine/modules/registry.ts";
import { blobOf } from "../src/engine/step/blob.ts";
import type { ModuleDefinition, StepContext } from "../src/engine/step/define.ts";
import { exampleIn } from "../src/cli/modules/module-example.ts";
import { moreArguments, SAMPLE } from "./module-samples.ts";
import { allowedLines, leftOut } from "./shell-rules.ts";

const root = fileURLToPath(new URL("../", import.meta.url));
const modules = join(root, "src/engine/modules");
const fragments = join(root, "src/engine/step/fragments");

interface Comment {
  readonly file: string;
  readonly line: number;
  readonly code: number;
  readonly message: string;
}

/** Files of sh in these folders: by their ending or their first line. */
function scripts(): string[] {
  const files = ["bin", "scripts", "src", "bench", "test/fixtures/k3s", ".ci"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.parentPath.includes("node_modules"))
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  return files.filter(
    (file) => file.endsWith(".sh") || /^#!.*\b(?:sh|bash)\n/.test(readFileSync(file, "latin1").slice(0, 80)),
  );
}

const context: StepContext = {
  node: "n1",
  nodeId: "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11",
  stateDir: "/var/lib/kcore",
  readFile: () => blobOf(SAMPLE),
  remote: () => blobOf(SAMPLE),
  renderTemplate: () => SAMPLE,
};

/** The texts of every module for each of its samples, by a name that tells where they come from. */
async function moduleTexts(): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  for (const [name, load] of registry) {
    const module: ModuleDefinition = await load();
    const source = readFileSync(join(modules, `${name.replaceAll(/[._]/g, "-")}.ts`), "utf8");
    const example = parse(exampleIn(source) ?? "") as Record<string, unknown>;
    for (const [index, args] of [example[name], ...(moreArguments[name] ?? [])].entries()) {
      const parsed = module.args.safeParse(args);
      if (!parsed.success) throw new Error(`sample ${index} of ${name}: ${parsed.error.message}`);
      const step = module.step(parsed.data, context);
      for (const part of ["probe", "guard", "foresee", "keep", "asks", "apply", "react", "show"] as const) {
        const text = step[part]?.render({ secret: () => '"$kS_1"', blob: () => '"$K_RUN/blobs/0"' });
        if (text !== undefined) texts.set(`${name} ${part}${index === 0 ? "" : ` (sample ${index})`}`, text);
      }
    }
  }
  return texts;
}

/** Texts in the source of modules and fragments of which no sample holds the longest constant piece. */
function unreached(texts: ReadonlyMap<string, string>): string[] {
  const all = [...texts.values()].join("\n");
  return [modules, fragments].flatMap((folder) =>
    readdirSync(folder).flatMap((name) => {
      const path = join(folder, name);
      const file = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
      return templatesIn(file).flatMap(({ piece, line }) =>
        all.includes(piece)
          ? []
          : [`${relative(root, path)}:${line}: no sample reaches this text: ${firstLine(piece)}`],
      );
    }),
  );
}

function templatesIn(file: ts.SourceFile): { piece: string; line: number }[] {
  const found: { piece: string; line: number }[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isTaggedTemplateExpression(node) && node.tag.getText() === "sh") {
      const { template } = node;
      const parts = ts.isTemplateExpression(template)
        ? [template.head, ...template.templateSpans.map(({ literal }) => literal)]
        : [template];
      const pieces = parts.map(({ rawText = "" }) => rawText.replaceAll("\\${", "${").replaceAll("\\`", "`"));
      const piece = pieces.reduce((longest, one) => (one.length > longest.length ? one : longest), "");
      if (piece.trim() !== "")
        found.push({ piece, line: file.getLineAndCharacterOfPosition(node.getStart()).line + 1 });
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

const firstLine = (text: string): string => text.trim().split("\n")[0] ?? "";

function run(
  command: string,
  args: readonly string[],
  input?: string,
): { code: number | null; out: string; err: string } {
  const { error, status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8", input, maxBuffer: 64 << 20 });
  if (error === undefined) return { code: status, out: stdout, err: stderr };
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  console.error(`${command} is not here: apt-get install ${command} (or see https://www.shellcheck.net)`);
  process.exit(1);
}

const used = new Set<(typeof allowedLines)[number]>();

function isAllowed(code: string, text: string): boolean {
  const found = allowedLines.find((allowed) => allowed.code === code && allowed.line.test(text));
  if (found) used.add(found);
  return found !== undefined;
}

const cache = join(root, "node_modules/.cache/shellcheck.json");

/** What shellcheck says of these files. It reads only texts that it did not read the last time: it takes 35 s of CPU for all. */
function commentsOn(paths: readonly string[], ...more: readonly string[]): Comment[] {
  const options = ["-f", "json", "-e", [...leftOut.keys()].join(","), ...more];
  const { out: version } = run("shellcheck", ["--version"]);
  const keyOf = (path: string): string =>
    createHash("sha256")
      .update(JSON.stringify([version, options, readFileSync(path, "latin1")]))
      .digest("hex");
  const keys = new Map(paths.map((path) => [path, keyOf(path)]));
  const unread = paths.filter((path) => known[keys.get(path) ?? ""] === undefined);
  const said = unread.length === 0 ? [] : (JSON.parse(run("shellcheck", [...options, ...unread]).out) as Comment[]);
  return paths.flatMap((path) => {
    const key = keys.get(path) ?? "";
    known[key] ??= said.filter(({ file }) => file === path);
    read[key] = known[key];
    return known[key].map((comment) => ({ ...comment, file: path }));
  });
}

/** Comments by what was read: those of the last time, and of this time. */
const known: Record<string, readonly Comment[]> = readCache();
const read: typeof known = {};

function readCache(): typeof known {
  try {
    return JSON.parse(readFileSync(cache, "utf8")) as typeof known;
  } catch {
    return {};
  }
}

/** What both have to say of these files, as lines; and rules that nothing needs any more. */
function judge(files: ReadonlyMap<string, string>): string[] {
  // It names the file in front of what it says.
  const { err } = run("sh", ["-c", 'for file; do sh -n "$file"; done', "sh", ...files.keys()]);
  const problems = err.split("\n").filter((line) => line !== "");
  const lines = new Map([...files.keys()].map((path) => [path, readFileSync(path, "utf8").split("\n")]));
  const textOf = ({ file, line }: Comment): string => lines.get(file)?.[line - 1] ?? "";
  // Parts of the node's program have no first line of their own; of the others it tells the shell.
  const { own = [], parts = [] } = Object.groupBy(lines.keys(), (path) =>
    lines.get(path)?.[0]?.startsWith("#!") ? "own" : "parts",
  );
  const comments = [...commentsOn(own), ...commentsOn(parts, "-s", "sh")].filter(
    (comment) => !isAllowed(`SC${comment.code}`, textOf(comment)),
  );
  const stale = allowedLines.filter((allowed) => !used.has(allowed));
  return [
    ...problems,
    ...stale.map(({ code, line }) => `scripts/shell-rules.ts: no line needs ${code} for ${line.source}`),
    ...comments.map((comment) => {
      const { file, line, code, message } = comment;
      return `${files.get(file)}:${line}: SC${code} ${message}\n    ${textOf(comment).trim()}`;
    }),
  ];
}

const folder = mkdtempSync(join(tmpdir(), "kcore-shell-"));
try {
  const texts = await moduleTexts();
  const files = new Map(scripts().map((path) => [path, relative(root, path)]));
  for (const [name, text] of texts) {
    const path = join(folder, name.replaceAll(/[ ()]/g, "-"));
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    files.set(path, name);
  }
  const problems = [...unreached(texts), ...judge(files)];
  mkdirSync(join(cache, ".."), { recursive: true });
  writeFileSync(cache, JSON.stringify(read));
  for (const problem of problems) console.error(problem);
  console.log(
    `shell: ${files.size} texts, ${problems.length === 0 ? "nothing to say" : `${problems.length} problems`}`,
  );
  process.exitCode = problems.length === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
