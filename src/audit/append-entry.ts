import { randomBytes } from "node:crypto";
import {
  closeSync,
  copyFileSync,
  constants,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { beginning, hashOf, linkEntry, type Fields, type Head } from "./chain.ts";
import { makeFolderSync } from "#base/folder.ts";
import { segmentName, segmentsAmong } from "./trail-files.ts";

/**
 * Adds one entry to a trail that several processes write to, and gives it as the new head; it is on the disk then. Each entry is a file of
 * its own, made whole aside and then given its name by link(2), which only one process can. A process that comes too late links to the
 * other's entry. So there is no lock to be held, to be squatted or to be left behind.
 * @throws NodeJS.ErrnoException when it cannot be written; then nothing has changed
 */
export function appendEntry(folder: string, at: number, fields: Fields): Head {
  makeFolderSync(folder);
  for (;;) {
    const { line, head } = linkEntry(headOf(folder), at, fields);
    const aside = join(folder, `.${randomBytes(8).toString("hex")}`);
    try {
      writeWhole(aside, line);
      giveName(aside, join(folder, segmentName(head.n)));
      syncFolder(folder);
      return head;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    } finally {
      remove(aside);
    }
  }
}

function headOf(folder: string): Head {
  const last = segmentsAmong(folder, readdirSync(folder)).at(-1);
  if (!last) return beginning;
  const lines = readFileSync(last.path, "utf8").split("\n");
  // A damaged entry, too: the next one names it as it is, and stands behind it.
  const count = Math.max(1, lines.length - 1);
  return { n: last.first + count - 1, hash: hashOf(lines[count - 1] ?? "") };
}

function writeWhole(path: string, text: string): void {
  const fd = openSync(path, "wx", 0o600);
  try {
    writeSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Some file systems (FAT, some shared folders) know no hard links: there a crash may leave an entry that is cut short. */
function giveName(aside: string, path: string): void {
  try {
    linkSync(aside, path);
  } catch (error) {
    if (!["EPERM", "ENOTSUP", "ENOSYS"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    copyFileSync(aside, path, constants.COPYFILE_EXCL);
  }
}

function syncFolder(folder: string): void {
  const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // The file was never made.
  }
}
