import type { Host } from "#engine/transport/host.ts";
import type { MachineFlags } from "../options.ts";
import { findMachine, withTransport } from "./find-machine.ts";
import { logIn } from "./log-in.ts";
import { pinOutsideRoster, verifyHostKey } from "./pin.ts";

/** Looks at one machine over SSH, whether it is in the roster or not; its key is verified as for an install. */
export function visitMachine<Result>(
  flags: MachineFlags & { readonly project?: string },
  look: (host: Host) => Promise<Result>,
): Promise<Result> {
  const machine = findMachine(flags.node, flags.project, flags.identityFile);
  process.stderr.write(`${machine.note}\n`);
  return withTransport(async (transport) => {
    const pinned = await verifyHostKey(machine, transport, flags);
    if (!pinned.isInRoster) await pinOutsideRoster(machine, pinned);
    const host = await logIn(machine, transport, pinned.key, flags);
    try {
      return await look(host);
    } finally {
      await host.close();
    }
  });
}
