import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { poll } from "#base/wait.ts";
import { startInGroup } from "../cgroup.ts";
import { nodeFailed } from "../processes.ts";

/** The longest time for a TPM to open its socket, in milliseconds. */
const longest = 30_000;

/**
 * Starts a machine's TPM 2.0 (swtpm(8)) in the machine's cgroup and returns the socket for QEMU. The TPM's memory is in `tpm` in the
 * machine's folder: without it the machine has another TPM. It ends with QEMU. Throws `LAB_NODE_FAILED`.
 */
export async function startTpm(group: string, folder: string): Promise<string> {
  const state = join(folder, "tpm");
  const socket = join(folder, "tpm-ctl");
  const log = join(folder, "tpm.log");
  await mkdir(state, { recursive: true, mode: 0o700 });
  await rm(socket, { force: true });
  const control = ["--ctrl", `type=unixio,path=${socket},mode=0600`, "--terminate"];
  const command = ["swtpm", "socket", "--tpm2", "--tpmstate", `dir=${state},mode=0600`, ...control];
  const lives = await startInGroup(group, command, log);
  await poll(() => existsSync(socket) || !lives(), { everyMs: 20, limitMs: longest });
  if (!existsSync(socket)) throw nodeFailed({ message: "the TPM does not start", hint: `look at ${log}` });
  return socket;
}
