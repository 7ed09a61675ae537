import { createReadStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { replaceFile } from "#base/file.ts";
import { makeFolder } from "#base/folder.ts";
import { run } from "#base/process.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { writeError } from "../project/write-asked.ts";
import type { SeedFiles } from "./cloud-config.ts";

/** Programs that make a CD image by mkisofs' options, the first that is there counts. */
const isoTools: readonly (readonly string[])[] = [["xorriso", "-as", "mkisofs"], ["genisoimage"], ["mkisofs"]];

/** The words that start a program which makes CD images. @throws KcoreError TOOL_MISSING */
export async function findIsoTool(): Promise<readonly string[]> {
  for (const words of isoTools) if ((await run([...words.slice(0, 1), "--version"])).code !== 127) return words;
  throw new KcoreError({
    code: "TOOL_MISSING",
    message: "no program on this machine makes a CD image",
    hint: "install the package xorriso or genisoimage, or write the files alone: --seed DIR",
  });
}

/** Writes the files (0600) into a folder, and removes a network-config that is none of them. @throws KcoreError USAGE */
export async function writeSeed(folder: string, files: SeedFiles): Promise<void> {
  await makeFolder(folder, { mode: 0o700 });
  try {
    if (files["network-config"] === undefined) await rm(join(folder, "network-config"), { force: true });
    for (const [name, text] of Object.entries(files)) await replaceFile(join(folder, name), text as string);
  } catch (error) {
    throw writeError(folder, error);
  }
}

/** Writes the files as a CD image (0600) with the label by which cloud-init finds it. @throws KcoreError USAGE */
export async function writeIso(file: string, files: SeedFiles, tool: readonly string[]): Promise<void> {
  let work: string | undefined;
  try {
    // Beside the image, since a temporary folder may lie on a disk that others keep.
    work = await mkdtemp(join(dirname(resolve(file)), ".seed-"));
    await writeSeed(join(work, "files"), files);
    const image = join(work, "image");
    const made = await run([...tool, "-J", "-r", "-V", "cidata", "-o", image, join(work, "files")]);
    if (made.code !== 0)
      throw usageError(`${tool[0]} made no image: ${made.stderr.trim()}`, "is there room on the disk?");
    await replaceFile(file, createReadStream(image));
  } catch (error) {
    throw writeError(file, error);
  } finally {
    if (work !== undefined) await rm(work, { recursive: true, force: true });
  }
}
