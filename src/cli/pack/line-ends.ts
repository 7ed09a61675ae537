import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { packsFolder } from "#engine/project/folders.ts";
import { replaceFile } from "#base/file.ts";
import type { PackFile } from "./pack-files.ts";

/** gitattributes(5): nothing of a file is converted when it is checked out, so that everybody has the bytes that are pinned. */
const line = "* -text -ident -filter";
const why = "# Packs are pinned by their bytes: git converts none of them.";

/** Has git check out packs as they are, whatever the project's other attributes say. */
export async function keepBytes(project: string): Promise<void> {
  const file = join(project, packsFolder, ".gitattributes");
  const text = existsSync(file) ? await readFile(file, "utf8") : "";
  if (text.split(/\r?\n/).includes(line)) return;
  const before = text === "" || text.endsWith("\n") ? text : `${text}\n`;
  await replaceFile(file, `${before}${why}\n${line}\n`, { mode: 0o644 });
}

/** The files as they may have been before git converted their line ends, to either. */
export function otherLineEnds(files: readonly PackFile[]): readonly (readonly PackFile[])[] {
  return ["\n", "\r\n"].map((end) => files.map((file) => ({ ...file, bytes: withLineEnds(file.bytes, end) })));
}

/** What holds a NUL git does not take for text. */
function withLineEnds(bytes: Buffer, end: string): Buffer {
  if (bytes.includes(0)) return bytes;
  return Buffer.from(bytes.toString("latin1").replaceAll(/\r?\n/g, end), "latin1");
}
