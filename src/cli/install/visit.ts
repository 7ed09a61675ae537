import type { Host } from "#engine/transport/host.ts";
import { defined } from "#optional/defined.ts";
import type { MachineFlags } from "../options.ts";
import { findMachine, wayTo, withTransport } from "./find-machine.ts";
import { pinOutsideRoster, verifyHostKey } from "./pin.ts";

/** Looks at one machine over SSH, whether it is in the roster or not; its key is verified as for an install. */
export function visitMachine<Result>(
  { node, project, insecure, hostKey }: MachineFlags & { readonly project?: string },
  look: (host: Host) => Promise<Result>,
): Promise<Result> {
  const machine = findMachine(node, project);
  process.stderr.write(`${machine.note}\n`);
  return withTransport(async (transport) => {
    const pinned = await verifyHostKey(machine, transport, defined({ insecure, hostKey }));
    if (!pinned.isInRoster) await pinOutsideRoster(machine, pinned);
    const { key } = pinned;
    const host = await transport.connect({ ...wayTo(machine), hostKeys: [`${key.type} ${key.key}`] });
    try {
      return await look(host);
    } finally {
      await host.close();
    }
  });
}
