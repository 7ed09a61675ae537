import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { replaceFile } from "#base/file.ts";
import { HeardLife } from "./cluster/node-lives.ts";

const Kept = z.array(HeardLife);

/** The nodes that sent heartbeats to this controller before its restart; none if the file cannot be read. */
export async function readLives(folder: string): Promise<readonly HeardLife[]> {
  try {
    return Kept.parse(JSON.parse(await readFile(fileIn(folder), "utf8")));
  } catch {
    return [];
  }
}

export async function writeLives(folder: string, lives: readonly HeardLife[]): Promise<void> {
  await replaceFile(fileIn(folder), JSON.stringify(lives));
}

function fileIn(folder: string): string {
  return join(folder, "heard-nodes.json");
}
