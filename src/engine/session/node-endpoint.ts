import { KcoreError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { JumpEntry, NodeEntry, Roster } from "#engine/roster/roster.ts";
import type { SecretReference } from "#engine/params/secret-reference.ts";
import type { Endpoint } from "#engine/transport/host.ts";

/** Gives the passphrase of a key file; undefined without one. `again`: the last passphrase was wrong. */
export type KeyPassphrase = (file: string, reference?: SecretReference, again?: boolean) => Promise<string | undefined>;

/**
 * How to reach a node: its own entry and its jump hosts, first hop first. The first hop's own jump hosts come before it.
 * @throws KcoreError ROSTER_JUMP
 */
export function endpointOf(node: NodeEntry, roster: Roster, passphrase: KeyPassphrase): Endpoint {
  return { ...hop(node, passphrase), transport: node.transport, jump: routeTo(node, roster, passphrase, [node.name]) };
}

function routeTo(
  { name, jump }: Pick<JumpEntry, "name" | "jump">,
  roster: Roster,
  passphrase: KeyPassphrase,
  seen: readonly string[],
): readonly Endpoint[] {
  const hops = jump.flatMap((hostName, index) => {
    if (seen.includes(hostName))
      throw new KcoreError({
        code: "ROSTER_JUMP",
        message: `the way to “${seen[0]}” goes in a circle: ${[...seen, hostName].join(" → ")}`,
        ...positionOf(name, roster),
        hint: "a jump host must be reachable without the node behind it",
      });
    const entry = jumpEntry(hostName, name, roster);
    // The bastion reaches the first hop itself; each further hop is reached through the hops before it.
    const before = index === 0 ? routeTo(entry, roster, passphrase, [...seen, hostName]) : [];
    return [...before, { ...hop(entry, passphrase), jump: [] }];
  });
  return hops;
}

function jumpEntry(hostName: string, from: string, roster: Roster): JumpEntry | NodeEntry {
  const entry = roster.jumps.get(hostName) ?? roster.nodes.get(hostName);
  if (entry !== undefined) return entry;
  throw new KcoreError({
    code: "ROSTER_JUMP",
    message: `“${from}” is reached through “${hostName}”, which is neither a node nor a jump host`,
    ...positionOf(from, roster),
    hint: suggestHint(
      hostName,
      [...roster.jumps.keys(), ...roster.nodes.keys()],
      "name it under “jumps:” of the roster",
    ) as string,
  });
}

function positionOf(name: string, roster: Roster) {
  const at = roster.positions.get(name);
  return at === undefined ? {} : { at };
}

function hop(entry: JumpEntry, passphrase: KeyPassphrase): Endpoint {
  const { name, address, port, user, identityFile, identityPassphrase, hostKeys } = entry;
  return {
    name,
    transport: "ssh",
    address,
    port,
    user,
    ...(identityFile !== undefined && {
      identityFile,
      passphrase: (again) => passphrase(identityFile, identityPassphrase, again),
    }),
    hostKeys,
    jump: [],
  };
}
