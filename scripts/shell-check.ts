/**
 * `npm run shell`: every script that is shipped or used, and every text of sh that a module can make, is parsed by sh and
 * read by shellcheck. Modules are rendered from their documented example, their cases and module-samples.ts; a text in their source that none
 * of these reaches is an error, so nothing is left out unseen.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { registry } from "../src/engine/modules/registry.ts";
import { blobOf } from "../src/engine/step/blob.ts";
import type { ModuleDefinition, Step, StepContext } from "../src/engine/step/define.ts";
import { KcoreError } from "../src/errors/problem.ts";
import { SAMPLE, samplesOf } from "./module-samples.ts";
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
  const files = ["bin", "scripts", "src", "bench", "examples", "test/fixtures/k3s", ".ci"].flatMap((folder) =>
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
  readFolder: () =>
    (["file", "link"] as const).map((kind) => {
      const { sha256, size } = blobOf(SAMPLE);
      return { kind, name: kind, target: "", sha256, size, isProgram: true, read: () => Buffer.from(SAMPLE) };
    }),
  remote: () => blobOf(SAMPLE),
  renderTemplate: () => SAMPLE,
};

const parts = ["probe", "guard", "foresee", "keep", "asks", "apply", "react", "show"] as const;

/**
 * The texts of every module, by a name that tells their origin. Arguments are the module's example, and those of its
 * cases and of module-samples.ts that reach a further text. Problems are texts that no arguments reach, and samples
 * that are not needed.
 */
async function moduleTexts(): Promise<{ texts: Map<string, string>; problems: string[] }> {
  const problems: string[] = [];
  const texts = new Map<string, string>();
  const open = new Set([modules, fragments].flatMap(templatesOf));
  for (const [name, load] of registry) {
    const module: ModuleDefinition = await load();
    const { example, cases, more } = samplesOf(name);
    for (const [index, args] of [example, ...cases, ...more].entries()) {
      const own = textsOf(module, args);
      const reached = [...open].filter(({ piece }) => Object.values(own).some((text) => text.includes(piece)));
      for (const template of reached) open.delete(template);
      if (index > cases.length && reached.length === 0)
        problems.push(
          `scripts/module-samples.ts: sample ${index - cases.length} of ${name} reaches no text that nothing else does`,
        );
      if (index > 0 && reached.length === 0) continue;
      for (const [part, text] of Object.entries(own))
        texts.set(`${name} ${part}${index === 0 ? "" : ` (sample ${index})`}`, text);
    }
  }
  for (const { place, piece } of open) problems.push(`${place}: no sample reaches this text: ${firstLine(piece)}`);
  return { texts, problems };
}

/** The texts of a step; none for arguments that the module refuses. */
function textsOf(module: ModuleDefinition, args: unknown): Record<string, string> {
  const parsed = module.args.safeParse(args);
  if (!parsed.success) return {};
  let step: Step;
  try {
    step = module.step(parsed.data, context);
  } catch (error) {
    if (error instanceof KcoreError) return {};
    throw error;
  }
  return Object.fromEntries(
    parts.flatMap((part) => {
      const text = step[part]?.render({ secret: () => '"$kS_1"', blob: () => '"$K_RUN/blobs/0"' });
      return text === undefined ? [] : [[part, text]];
    }),
  );
}

interface Template {
  /** The longest constant piece of the text. */
  readonly piece: string;
  readonly place: string;
}

function templatesOf(folder: string): Template[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    const file = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
    return templatesIn(file).map(({ piece, line }) => ({ piece, place: `${relative(root, path)}:${line}` }));
  });
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

/** Shellcheck's comments on these files. It reads only texts that are new since the last run, as all take 35 s of CPU. */
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

/** Comments by the digest of a text: of the last run, and of this one. */
const known: Record<string, readonly Comment[]> = readCache();
const read: typeof known = {};

function readCache(): typeof known {
  try {
    return JSON.parse(readFileSync(cache, "utf8")) as typeof known;
  } catch {
    return {};
  }
}

/** The comments of sh and shellcheck on these files, as lines, and rules that are no longer needed. */
function judge(files: ReadonlyMap<string, string>): string[] {
  // sh names the file in front of its message.
  const { err } = run("sh", ["-c", 'for file; do sh -n "$file"; done', "sh", ...files.keys()]);
  const problems = err.split("\n").filter((line) => line !== "");
  const lines = new Map([...files.keys()].map((path) => [path, readFileSync(path, "utf8").split("\n")]));
  const textOf = ({ file, line }: Comment): string => lines.get(file)?.[line - 1] ?? "";
  // The first line of a script names its shell; parts of the node's program have none, and are sh.
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
  const { texts, problems: missed } = await moduleTexts();
  const files = new Map(scripts().map((path) => [path, relative(root, path)]));
  for (const [name, text] of texts) {
    const path = join(folder, name.replaceAll(/[ ()]/g, "-"));
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    files.set(path, name);
  }
  const problems = [...missed, ...judge(files)];
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
