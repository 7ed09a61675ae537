import { createHash } from "node:crypto";
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import { existsSync } from "node:fs";
import { packsFolder } from "#engine/project/folders.ts";
import { replaceFile } from "#base/file.ts";

const MAX_FILES = 2000;
const MAX_BYTES = 16 << 20;

/** A file of a pack. */
export interface PackFile {
  /** The path below the pack's folder. */
  readonly name: string;
  readonly bytes: Buffer;
  readonly isProgram: boolean;
}

/**
 * The files of a pack, sorted by name: plain files only, without .git.
 * @throws KcoreError PACK_INVALID for links, devices, and packs of more than 2,000 files or 16 MiB
 */
export async function readPack(folder: string): Promise<readonly PackFile[]> {
  const files: PackFile[] = [];
  let size = 0;
  const walk = async (below: string): Promise<void> => {
    for (const name of (await readdir(join(folder, below))).sort()) {
      if (name === ".git") continue;
      const path = below === "" ? name : `${below}/${name}`;
      const stats = await lstat(join(folder, path));
      if (stats.isDirectory()) await walk(path);
      else if (!stats.isFile()) throw invalidPack(`${path} is neither a file nor a folder`);
      else {
        size += stats.size;
        if (files.length >= MAX_FILES || size > MAX_BYTES) throw invalidPack("it has more than 2,000 files or 16 MiB");
        files.push({ name: path, bytes: await readFile(join(folder, path)), isProgram: (stats.mode & 0o100) !== 0 });
      }
    }
  };
  await walk("");
  return files.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The pack's hash, `sha256:HEX`, over one line a file: its hash, whether it is a program, and its name. */
export function hashPack(files: readonly PackFile[]): string {
  const lines = files.map(
    ({ name, bytes, isProgram }) => `${sha256(bytes)} ${isProgram ? "x" : "-"} ${JSON.stringify(name)}\n`,
  );
  return `sha256:${sha256(lines.join(""))}`;
}

function sha256(bytes: Buffer | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function invalidPack(message: string): KcoreError {
  return new KcoreError({ code: "PACK_INVALID", message: `the pack cannot be used: ${message}` });
}

/** gitattributes(5): git converts nothing in these files, so that every checkout has the pinned bytes. */
const attributes = "* -text -ident -filter";
const attributesComment = "# Packs are pinned by their bytes: git converts none of them.";

/** Makes git check out packs unchanged, despite the project's other attributes. */
export async function keepBytes(project: string): Promise<void> {
  const file = join(project, packsFolder, ".gitattributes");
  const text = existsSync(file) ? await readFile(file, "utf8") : "";
  if (text.split(/\r?\n/).includes(attributes)) return;
  const before = text === "" || text.endsWith("\n") ? text : `${text}\n`;
  await replaceFile(file, `${before}${attributesComment}\n${attributes}\n`, { mode: 0o644 });
}

/** The files with LF line ends, and with CRLF: git may have converted them to either. */
export function otherLineEnds(files: readonly PackFile[]): readonly (readonly PackFile[])[] {
  return ["\n", "\r\n"].map((end) => files.map((file) => ({ ...file, bytes: withLineEnds(file.bytes, end) })));
}

/** The file with these line ends; git leaves a file with a NUL alone. */
function withLineEnds(bytes: Buffer, end: string): Buffer {
  if (bytes.includes(0)) return bytes;
  return Buffer.from(bytes.toString("latin1").replaceAll(/\r?\n/g, end), "latin1");
}
