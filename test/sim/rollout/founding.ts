import type { MachineFacts } from "#agent/facts.ts";
import { keyRules, keys, type RegistrationRecord } from "#controller/cluster/registers.ts";
import { ClusterState } from "#controller/replica/cluster-state.ts";
import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import { memoryReplica } from "../../support/memory-replica.ts";
import { neverExpires } from "./requests.ts";
import { epochMs, first, versionOf } from "./targets.ts";

export interface Member {
  readonly id: string;
  readonly dc: string;
  readonly isController: boolean;
}

/** The facts of a node that runs this version. */
export function factsOf({ id, dc }: Member, present: string) {
  const machine = { hostname: id, dc, roles: [], labels: {}, cpu: 1, memory: 1 };
  const runtime = { id: present, canUpdate: true };
  return { nodeId: id, ...machine, version: versionOf(present), runtime } satisfies MachineFacts;
}

/** The journal of a controller at the beginning: the members, and the approved nodes. */
export async function foundingOf(members: readonly Member[]): Promise<readonly JournalRecord[]> {
  const data = new ClusterState(keyRules);
  const replica = memoryReplica(() => epochMs, "founder", data);
  const at = new Date(epochMs).toISOString();
  const certificate = { key: "k", serial: "01", certificateExpires: neverExpires.toISOString(), registeredAt: at };
  const registered = (member: Member) => {
    const { nodeId: _, ...facts } = factsOf(member, first);
    return { address: "192.0.2.1", ...facts, ...certificate } satisfies RegistrationRecord;
  };
  await replica.write(
    members.flatMap((member) => [
      ...(member.isController
        ? [
            { key: keys.controller(member.id).auth, value: { spki: member.id, dc: "", at } },
            { key: keys.controller(member.id).version, value: { version: "" } },
          ]
        : []),
      { key: keys.node(member.id).reg, value: registered(member) },
      { key: keys.node(member.id).approval, value: { epoch: 0, state: "approved", by: "operator" } },
    ]),
  );
  return [...data.snapshot()].map((record) => {
    if (record.t !== "meta") return record;
    const { origin: _, storeId: __, ...meta } = record;
    return meta;
  });
}
