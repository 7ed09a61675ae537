import { hostFailure } from "./host-problems.ts";
import type { Host } from "./host.ts";

/** Constant; Debian's initrd runs it for any request (cryptsetup-initramfs, README.initramfs). */
const command = "cryptroot-unlock";

/** `lost`: the connection ended meanwhile, as it may when the machine goes on booting; `unasked`: the initrd waited for no key. */
export type UnlockOutcome = "open" | "lost" | "unasked";

/** Sends the key to an initrd that waits for it, on stdin alone; `lost` if the signal aborts. @throws KcoreError UNLOCK_FAILED for a wrong key; as `Host.exec` */
export async function unlockHost(host: Host, key: string, signal: AbortSignal): Promise<UnlockOutcome> {
  const channel = await host.exec(command, { input: key, signal });
  channel.end();
  // eslint-disable-next-line @typescript-eslint/no-unused-vars
  for await (const _ of channel.stdout) continue;
  const { code } = await channel.exit;
  const said = channel.stderrTail().trim();
  if (code === 0 || said.includes("set up successfully")) return "open";
  if (!/bad password|maximum number of tries/.test(said)) return code === undefined ? "lost" : "unasked";
  throw hostFailure({
    code: "UNLOCK_FAILED",
    message: `${host.name} did not open by the recovery key that is kept here`,
    hint: "was the container made anew since, or the key in its slot 31 removed? Another key unlocks it at its console",
    detail: said,
  });
}
