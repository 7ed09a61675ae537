import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import { isInside, refuseShippedName } from "#engine/project/folders.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { readSource } from "#engine/yaml/read.ts";
import { validate } from "#engine/yaml/validate.ts";
import { readPack, type PackFile } from "./pack-files.ts";

/** Where a pack comes from: a folder, or a git repository at a branch, tag or commit. */
export interface PackSource {
  readonly source: string;
  /** A folder within it. */
  readonly path?: string;
  readonly ref?: string;
}

export interface FetchedPack {
  readonly name: string;
  readonly description?: string;
  /** The commit, 40 hex digits; absent for a folder that is under no git. */
  readonly revision?: string;
  readonly files: readonly PackFile[];
}

const Outline = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9]{0,30}$/, "must be lower case letters and digits"),
  description: z.string().optional(),
});

/**
 * Gets a pack's files; nothing of the project changes. Git asks for no password: keys and helpers of the operator's are used.
 * @throws KcoreError PACK_UNREACHABLE, PACK_INVALID, and what is wrong with its pack.yaml
 */
export async function fetchPack(project: string, { source, path = ".", ref }: PackSource): Promise<FetchedPack> {
  refusePassword(source);
  const folder = resolve(project, source);
  const isFolder = !source.includes("://") && (await stat(folder).catch(() => undefined))?.isDirectory() === true;
  if (isFolder && ref === undefined) return read(folder, path, source);
  if (!isFolder && !source.includes(":")) throw noFolder(folder, project);
  const clone = await mkdtemp(join(tmpdir(), "kcore-pack-"));
  try {
    await git(clone, "init", "-q");
    await git(clone, "fetch", "-q", "--depth", "1", "--", isFolder ? folder : source, ref ?? "HEAD");
    const revision = (await git(clone, "rev-parse", "FETCH_HEAD")).trim();
    await git(clone, "checkout", "-q", "FETCH_HEAD");
    return { ...(await read(clone, path, source)), revision };
  } finally {
    await rm(clone, { recursive: true, force: true });
  }
}

/** What has no colon is no address of git's (git-fetch(1), GIT URLS: a URL, or HOST:PATH). */
function noFolder(folder: string, project: string): KcoreError {
  return new KcoreError({
    code: "PACK_UNREACHABLE",
    message: `there is no folder ${folder}`,
    hint: `a relative source is looked up from the project (${project}); a git repository is named by its URL`,
  });
}

/** packs.yaml is for everybody to read. @throws KcoreError SECRET_LITERAL */
function refusePassword(source: string): void {
  if (!/^[a-z][\w+.-]*:\/\/[^/@]*:[^/]*@/i.test(source)) return;
  throw new KcoreError({
    code: "SECRET_LITERAL",
    message: "the pack's address has a password in it, which packs.yaml would show",
    hint: "leave it out: git's credential helpers know it (gitcredentials(7))",
  });
}

/** The pack in a folder of `root`. A link on the way may lead nowhere else. */
async function read(root: string, path: string, source: string): Promise<FetchedPack> {
  const folder = join(root, path);
  const [whole, real] = await Promise.all([realpath(root), realpath(folder).catch(() => "")]);
  if (!isInside(path) || !`${real}/`.startsWith(`${whole}/`))
    throw new KcoreError({ code: "PACK_INVALID", message: `${source} has no folder ${path}` });
  const file = join(folder, "pack.yaml");
  if (!existsSync(file))
    throw new KcoreError({
      code: "PACK_INVALID",
      message: `${source} is no pack: it has no pack.yaml`,
      hint: "pack.yaml holds its name; --path names a folder within the repository",
    });
  const { name, description } = validate(readSource(file, { name: "pack.yaml" }), Outline);
  refuseShippedName(name, shippedRoot());
  return { name, ...(description !== undefined && { description }), files: await readPack(folder) };
}

async function git(folder: string, ...words: readonly string[]): Promise<string> {
  const environment = {
    ...withoutRepository(process.env),
    GIT_TERMINAL_PROMPT: "0",
    // ssh would ask on the terminal: this answers all its questions with no.
    SSH_ASKPASS: "false",
    SSH_ASKPASS_REQUIRE: "force",
    GIT_LFS_SKIP_SMUDGE: "1",
  };
  // No hook or filter of the repository runs here.
  const settings = [
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.symlinks=true",
    "-c",
    "core.autocrlf=false",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "advice.detachedHead=false",
  ];
  try {
    const options = { timeout: 300_000, maxBuffer: 1 << 26, env: environment };
    return (await promisify(execFile)("git", ["-C", folder, ...settings, ...words], options)).stdout;
  } catch (cause) {
    const { stderr, message } = cause as Error & { readonly stderr?: string };
    throw new KcoreError(
      {
        code: "PACK_UNREACHABLE",
        message: `git cannot get the pack: ${(stderr ?? message).trim()}`,
        hint: "check the address and the revision; git's own keys and helpers are used, and nothing is asked",
      },
      { cause },
    );
  }
}

/** Of the repository that a hook or an alias of git's runs in (git rev-parse --local-env-vars). */
const repositoryVariables = [
  "GIT_ALTERNATE_OBJECT_DIRECTORIES",
  "GIT_COMMON_DIR",
  "GIT_DIR",
  "GIT_GRAFT_FILE",
  "GIT_IMPLICIT_WORK_TREE",
  "GIT_INDEX_FILE",
  "GIT_NAMESPACE",
  "GIT_OBJECT_DIRECTORY",
  "GIT_PREFIX",
  "GIT_REPLACE_REF_BASE",
  "GIT_SHALLOW_FILE",
  "GIT_WORK_TREE",
];

/** Else git would fetch into that repository, and move its HEAD. */
function withoutRepository(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !repositoryVariables.includes(name)));
}
