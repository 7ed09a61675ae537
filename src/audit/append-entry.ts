import { randomBytes } from "node:crypto";
import { copyFileSync, constants, linkSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beginning, lineHash, linkEntry, type EntryFields, type TrailHead } from "./chain.ts";
import { makeFolderSync, syncFolderSync } from "#base/folder.ts";
import { trailFileName, trailFilesAmong } from "./trail-files.ts";

/**
 * Appends an entry to a trail that several processes write to, flushes the entry, and returns the new head. Each entry is a file of its own:
 * written under a temporary name, then linked to its number by link(2), which fails if another process took that number. The loser
 * tries again behind the winner's entry. So no lock exists that another user could hold or a crash could leave behind.
 * @throws NodeJS.ErrnoException when the entry cannot be written or flushed
 */
export function appendEntry(folder: string, at: number, fields: EntryFields): TrailHead {
  makeFolderSync(folder);
  for (;;) {
    const { line, head } = linkEntry(headOf(folder), at, fields);
    const aside = join(folder, `.${randomBytes(8).toString("hex")}`);
    try {
      writeFileSync(aside, line, { mode: 0o600, flag: "wx", flush: true });
      linkOrCopy(aside, join(folder, trailFileName(head.n)));
      syncFolderSync(folder);
      return head;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    } finally {
      removeIfThere(aside);
    }
  }
}

function headOf(folder: string): TrailHead {
  const last = trailFilesAmong(folder, readdirSync(folder)).at(-1);
  if (!last) return beginning;
  const lines = readFileSync(last.path, "utf8").split("\n");
  // The last line may be damaged: the new entry carries that line's hash and follows it.
  const count = Math.max(1, lines.length - 1);
  return { n: last.first + count - 1, hash: lineHash(lines[count - 1] ?? "") };
}

/** Links the file to its name, or copies it on a file system without hard links (FAT, some shares); a crash can truncate the copy. */
function linkOrCopy(aside: string, path: string): void {
  try {
    linkSync(aside, path);
  } catch (error) {
    if (!["EPERM", "ENOTSUP", "ENOSYS"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    copyFileSync(aside, path, constants.COPYFILE_EXCL);
  }
}

function removeIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // The temporary file was never made.
  }
}
