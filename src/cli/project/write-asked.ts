import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import { makeFolder } from "#pki/make-folder.ts";

/** Writes a file that the operator asked for. @throws KcoreError USAGE when it cannot be written */
export async function writeAsked(file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text);
  } catch (cause) {
    const message = `${file} cannot be written: ${(cause as Error).message}`;
    throw new KcoreError({ code: "USAGE", message }, { cause });
  }
}

/** Writes such files into a folder, which is made where it is not there; gives their paths. @throws KcoreError USAGE */
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
