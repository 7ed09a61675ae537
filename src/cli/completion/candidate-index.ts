import { createHash } from "node:crypto";
import { statSync, type Stats } from "node:fs";
import { join } from "node:path";
import { replaceFileSync } from "#base/file.ts";
import { checkOf, trustOfProcess } from "#engine/project/project.ts";
import { makeIgnoredFolder } from "#engine/run/run-folder.ts";
import { MAX_ROSTER_BYTES, readBytes } from "#engine/yaml/regular-file.ts";
import { kcoreVersion } from "../process/version.ts";

/** A file from which candidates are made. */
export interface IndexedFile {
  readonly path: string;
  /** Relative to the project. */
  readonly shown: string;
  /** Throws if the opened file is not trusted (S-20). */
  readonly check?: (name: string, stats: Stats) => void;
}

/**
 * The result of `make`, which must depend on the content of `files` alone. It is kept in `.kcore/completion/NAME`, under a hash over kcore's
 * version, the bytes of all files and the result itself. If the hash does not fit, or any file cannot be read, `make` is called.
 */
export async function indexed<Result>(
  project: string | undefined,
  name: string,
  files: () => readonly IndexedFile[],
  make: () => Promise<Result>,
): Promise<Result> {
  const before = project === undefined ? undefined : attempt(() => contentOf(files()));
  if (project === undefined || before === undefined) return make();
  const trusted = { maxBytes: MAX_ROSTER_BYTES, check: checkOf(trustOfProcess(process.env)) };
  const kept = attempt(() => readBytes(join(project, ".kcore/completion", name), trusted).toString());
  const body = kept?.slice(kept.indexOf("\n") + 1);
  if (body !== undefined && kept === sealed(before.hash, body)) return JSON.parse(body) as Result;
  const made = await make();
  attempt(() => {
    // A file that changes while `make` reads it, and is as before later, would find another result under its hash.
    if (contentOf(files()).times !== before.times) return;
    // Under sudo a completion makes no folder of root's in another user's project.
    if (statSync(join(project, ".kcore")).uid !== process.getuid?.()) return;
    const folder = makeIgnoredFolder(project, "completion");
    replaceFileSync(join(folder, name), sealed(before.hash, JSON.stringify(made)));
  });
  return made;
}

function contentOf(files: readonly IndexedFile[]): { readonly hash: string; readonly times: string } {
  const hash = createHash("sha256").update(`kcore ${kcoreVersion()}\n`);
  const times: string[] = [];
  for (const { path, shown, check } of files) {
    const bytes = readBytes(path, {
      name: shown,
      maxBytes: MAX_ROSTER_BYTES,
      check: (name, stats) => {
        check?.(name, stats);
        times.push(`${name} ${stats.ino} ${stats.ctimeMs}`);
      },
    });
    hash.update(`${JSON.stringify(shown)} ${bytes.length}\n`).update(bytes);
  }
  return { hash: hash.digest("hex"), times: times.join("\n") };
}

function sealed(content: string, body: string): string {
  return `${createHash("sha256").update(`${content}\n${body}`).digest("hex")}\n${body}`;
}

/** The result of `work`; undefined if it throws: an index may fail without a word. */
function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
