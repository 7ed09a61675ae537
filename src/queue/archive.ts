import { createHash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { mkdtemp, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makeFolderSync } from "#base/folder.ts";
import { run } from "#base/process.ts";
import { readProjectContent } from "#engine/project/content.ts";
import { KcoreError } from "#errors/problem.ts";

const MOST_BYTES = 256 * 2 ** 20;

/** A project's files as a tar: the same files give the same bytes, and so the same hash. */
export interface Archive {
  readonly hash: string;
  readonly bytes: Buffer;
}

/** Packs the files that a run reads of a project, with the last answers of the roster's sources. @throws KcoreError QUEUE_ARCHIVE */
export async function packProject(project: string): Promise<Archive> {
  const content = Object.keys(readProjectContent(project)).filter((name) => existsSync(join(project, name)));
  const answers = join(".kcore", "roster");
  const kept = existsSync(join(project, answers)) ? readdirSync(join(project, answers)) : [];
  const names = [...content, ...kept.map((name) => join(answers, name))].toSorted();
  const same = ["--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--mode=go=", "--format=gnu"];
  const { code, bytes, stderr } = await run(
    ["tar", "-C", project, "-c", ...same, "--no-recursion", "--null", "-T", "-"],
    { input: names.map((name) => `${name}\0`).join(""), mostBytes: MOST_BYTES },
  );
  if (code !== 0) throw failed(`the project cannot be packed: ${stderr.trim() || `more than ${MOST_BYTES} bytes`}`);
  return { hash: createHash("sha256").update(bytes).digest("hex"), bytes };
}

/** Unpacks a project into a folder that no other project has; the same one if it is there. @throws KcoreError QUEUE_ARCHIVE */
export async function unpackProject(folder: string, { hash, bytes }: Archive): Promise<string> {
  if (createHash("sha256").update(bytes).digest("hex") !== hash)
    throw failed("the project's archive is not the one that the run names");
  const path = join(folder, hash);
  if (existsSync(path)) return path;
  makeFolderSync(dirname(path));
  const temporary = await mkdtemp(`${path}.`);
  const { code, stderr } = await run(["tar", "-C", temporary, "-x", "--no-same-owner"], { input: bytes });
  if (code !== 0) throw failed(`the project cannot be unpacked: ${stderr.trim()}`);
  // Another job may have unpacked it meanwhile.
  await rename(temporary, path).catch(() => rm(temporary, { recursive: true, force: true }));
  return path;
}

function failed(message: string): KcoreError {
  return new KcoreError({ code: "QUEUE_ARCHIVE", message });
}
