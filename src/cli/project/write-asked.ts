import { constants, existsSync } from "node:fs";
import { access, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { writeFailures } from "#engine/run/unwritable.ts";
import { KcoreError } from "#errors/problem.ts";
import { makeFolder } from "#base/folder.ts";

/**
 * Writes a file that the operator asked for, in place: the path may be a device or a link. @throws KcoreError USAGE when
 * it cannot be written
 */
export async function writeAsked(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text);
  } catch (cause) {
    throw writeError(file, cause);
  }
}

/** The error for a file that cannot be written, without the temporary file's name; a KcoreError stays as it is. */
export function writeError(file: string, cause: unknown): KcoreError {
  if (cause instanceof KcoreError) return cause;
  const { why, hint } = writeFailureReason(file, cause);
  return new KcoreError({ code: "USAGE", message: `${file} cannot be written: ${why}`, hint }, { cause });
}

/** The reason why a file could not be written, and a hint. */
export function writeFailureReason(file: string, cause: unknown): { readonly why: string; readonly hint: string } {
  const folder = dirname(file);
  const { code = "", message } = cause as NodeJS.ErrnoException;
  const hint = "name another file";
  if (code === "ENOENT") return { why: `there is no folder ${folder}`, hint: `mkdir -p ${folder}` };
  if (code === "ENOTDIR") return { why: `${folder} is not a folder`, hint };
  if (code === "EISDIR") return { why: "it is a folder", hint };
  if (code === "EEXIST") return { why: "it is there already", hint };
  return { why: writeFailures[code] ?? message, hint };
}

/** Writes files that the operator asked for into a folder, made if missing; returns their paths. @throws KcoreError USAGE */
export async function writeAskedInto(
  folder: string,
  files: Iterable<readonly [name: string, text: string]>,
): Promise<readonly string[]> {
  await makeFolder(folder);
  const paths: string[] = [];
  for (const [name, text] of files) {
    await writeAsked(join(folder, name), text);
    paths.push(join(folder, name));
  }
  return paths;
}

/** Refuses a file that is there already, or that cannot be made. @throws KcoreError FILE_IN_THE_WAY, USAGE */
export async function requireNew(file: string): Promise<void> {
  if (existsSync(file))
    throw new KcoreError({
      code: "FILE_IN_THE_WAY",
      message: `${file} cannot be made: it is there already`,
      hint: "name another file",
    });
  await access(dirname(file), constants.W_OK).catch((cause: unknown) => {
    throw writeError(file, cause);
  });
}
