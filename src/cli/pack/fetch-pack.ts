import { existsSync } from "node:fs";
import { mkdtemp, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { z } from "zod";
import { git } from "#base/git.ts";
import { runTask, type RunTasks } from "#base/tasks.ts";
import { KcoreError } from "#errors/problem.ts";
import { isInside, refuseShippedName } from "#engine/project/folders.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { readSource } from "#engine/yaml/read.ts";
import { validate } from "#engine/yaml/validate.ts";
import { readPack, type PackFile } from "./pack-files.ts";

/** Where a pack comes from: a folder, or a git repository at a branch, tag or commit. */
export interface PackSource {
  readonly source: string;
  /** The pack's folder within the source. */
  readonly path?: string;
  readonly ref?: string;
}

export interface FetchedPack {
  readonly name: string;
  readonly description?: string;
  /** The commit in hex digits; absent for a folder without a `ref`. */
  readonly revision?: string;
  readonly files: readonly PackFile[];
}

const PackYaml = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9]{0,30}$/, "must be lower case letters and digits"),
  description: z.string().optional(),
});

/**
 * Gets a pack's files, from a repository as a task; nothing of the project changes. Git uses the operator's keys and helpers, and asks for
 * no password.
 * @throws KcoreError PACK_UNREACHABLE, PACK_INVALID, SECRET_LITERAL, and mistakes in its pack.yaml
 */
export async function fetchPack(
  project: string,
  { source, path = ".", ref }: PackSource,
  tasks: RunTasks,
): Promise<FetchedPack> {
  refusePassword(source);
  const folder = resolve(project, source);
  const isFolder = !source.includes("://") && (await stat(folder).catch(() => undefined))?.isDirectory() === true;
  if (isFolder && ref === undefined) return readPackFolder(folder, path, source);
  if (!isFolder && !source.includes(":")) throw noFolder(folder, project);
  const clone = await mkdtemp(join(tmpdir(), "kcore-pack-"));
  const fetch = async (): Promise<string> => {
    await gitIn(clone, "init", "-q");
    await gitIn(clone, "fetch", "-q", "--depth", "1", "--", isFolder ? folder : source, ref ?? "HEAD");
    const commit = (await gitIn(clone, "rev-parse", "FETCH_HEAD")).trim();
    await gitIn(clone, "checkout", "-q", "FETCH_HEAD");
    return commit;
  };
  try {
    const revision = await runTask(tasks, `fetching ${source}`, fetch, (commit) => commit.slice(0, 12));
    return { ...(await readPackFolder(clone, path, source)), revision };
  } finally {
    await rm(clone, { recursive: true, force: true });
  }
}

/**
 * The error for a missing folder. A source without a colon is a folder, as git's addresses have one (git-fetch(1), GIT URLS).
 */
function noFolder(folder: string, project: string): KcoreError {
  return new KcoreError({
    code: "PACK_UNREACHABLE",
    message: `there is no folder ${folder}`,
    hint: `a relative source is looked up from the project (${project}); a git repository is named by its URL`,
  });
}

/** Refuses a password in the address, which packs.yaml would show to all who have the project. @throws KcoreError SECRET_LITERAL */
function refusePassword(source: string): void {
  if (!/^[a-z][\w+.-]*:\/\/[^/@]*:[^/]*@/i.test(source)) return;
  throw new KcoreError({
    code: "SECRET_LITERAL",
    message: "the pack's address has a password in it, which packs.yaml would show",
    hint: "leave it out: git's credential helpers know it (gitcredentials(7))",
  });
}

/** Reads the pack in the folder `path` of `root`; symbolic links in `path` must not lead out of `root`. @throws KcoreError PACK_INVALID */
async function readPackFolder(root: string, path: string, source: string): Promise<FetchedPack> {
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
  const { name, description } = validate(readSource(file, { name: "pack.yaml" }), PackYaml);
  refuseShippedName(name, shippedRoot());
  return { name, ...(description !== undefined && { description }), files: await readPack(folder) };
}

/** With these settings nothing of the repository runs here, and the operator's own settings convert no file. */
const gitSettings = [
  "core.hooksPath=/dev/null",
  "core.symlinks=true",
  "core.autocrlf=false",
  "protocol.ext.allow=never",
  "advice.detachedHead=false",
].flatMap((setting) => ["-c", setting]);

async function gitIn(folder: string, ...words: readonly string[]): Promise<string> {
  // ssh would ask on the terminal: SSH_ASKPASS answers all its questions with no.
  const env = { SSH_ASKPASS: "false", SSH_ASKPASS_REQUIRE: "force", GIT_LFS_SKIP_SMUDGE: "1" };
  try {
    return await git(folder, [...gitSettings, ...words], { env, limitMs: 300_000 });
  } catch (cause) {
    throw new KcoreError(
      {
        code: "PACK_UNREACHABLE",
        message: `git cannot get the pack: ${(cause as Error).message}`,
        hint: "check the address and the revision; git's own keys and helpers are used, and nothing is asked",
      },
      { cause },
    );
  }
}
