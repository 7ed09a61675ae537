import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { must } from "./run-command.ts";
import { withLock } from "./lock.ts";
import type { Place } from "./place.ts";
import { identityFileOf } from "./shell.ts";

/** Makes the key pair of the labs on this machine, once. */
export async function makeKey(place: Place): Promise<void> {
  const file = identityFileOf(place);
  if (existsSync(`${file}.pub`)) return;
  await withLock(place.home, "key", 60, async () => {
    if (existsSync(`${file}.pub`)) return;
    await rm(file, { force: true }); // the public half is written last
    await must("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "kcore-lab", "-f", file]);
  });
}
