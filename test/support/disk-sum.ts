import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import type { LabNode } from "#lab/lab.ts";

/** The hash of all that a virtual machine has synced to a disk, read here: its emulated processor would take seconds for it. */
export async function diskSum({ disks }: LabNode, index: number): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(disks[index]?.image ?? ""), hash);
  return hash.digest("hex");
}
