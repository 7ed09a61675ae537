import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import type { LabNode } from "#lab/lab.ts";

/** The hash of a virtual machine's disk, of all synced data. This machine computes it, since the emulated processor would take seconds. */
export async function diskSum({ disks }: LabNode, index: number): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(disks[index]?.image ?? ""), hash);
  return hash.digest("hex");
}
