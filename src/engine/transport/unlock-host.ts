import { hostFailure } from "./unreachable.ts";
import type { Host } from "./host.ts";

/** Constant; Debian's initrd runs it whatever it is asked for (cryptsetup-initramfs, README.initramfs). */
const command = "cryptroot-unlock";

/**
 * Gives the key to an initrd that waits for it, on stdin alone; true once the container is open. False: it was not asked for just now, or the
 * connection ended meanwhile, as it does when the machine goes on. @throws KcoreError UNLOCK_FAILED when it does not fit
 */
export async function unlockHost(host: Host, key: string): Promise<boolean> {
  const channel = await host.exec(command, { input: key });
  channel.end();
  // eslint-disable-next-line @typescript-eslint/no-unused-vars
  for await (const _ of channel.stdout) continue;
  const { code } = await channel.exit;
  const said = channel.stderrTail().trim();
  if (code === 0 || said.includes("set up successfully")) return true;
  if (!/bad password|maximum number of tries/.test(said)) return false;
  throw hostFailure({
    code: "UNLOCK_FAILED",
    message: `${host.name} did not open by the recovery key that is kept here`,
    hint: "was the container made anew since, or the key in its slot 31 removed? Another key unlocks it at its console",
    detail: said,
  });
}
