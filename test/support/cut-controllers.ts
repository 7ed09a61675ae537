import { watchCertificates } from "#controller/cluster/certificates.ts";
import { watchNodeLives } from "#controller/cluster/node-lives.ts";
import { watchNodeNames } from "#controller/cluster/node-names.ts";
import { manageNodes, type Nodes } from "#controller/cluster/nodes.ts";
import { openRecords } from "#controller/cluster/records.ts";
import { watchRejects } from "#controller/cluster/rejects.ts";
import { isKnown, keyRules } from "#controller/cluster/registers.ts";
import { Scheduler } from "../sim/scheduler.ts";
import { registrationOf } from "./controllers.ts";
import { connect, TestReplica, type Wire } from "./replica.ts";

const options = {
  ...keyRules,
  // TestReplica registers controllers by a shorter value of `…/auth` than the product writes, so its form is not checked.
  isKnown: (key: string, json: string) => key.endsWith("/auth") || isKnown(key, json),
};

export const caller = { id: "n", key: "k", serial: "01", certificateExpiresAt: 9e12 };

/** Controllers in virtual time with one registered node `n`, approved unless `requiresManualApproval`. All pairs are linked; the links can be cut and healed. */
export class Controllers {
  readonly scheduler = new Scheduler();
  readonly replicas: TestReplica[] = [];
  readonly #wires: Wire[] = [];
  nodes: readonly Nodes[] = [];
  parts: readonly ReturnType<typeof partsOf>[] = [];

  static async start(count: number, requiresManualApproval = false): Promise<Controllers> {
    const all = new Controllers();
    const ids = Array.from({ length: count }, (_, index) => `c${index + 1}`);
    const first = new TestReplica(all.scheduler, "c1", options);
    await first.register(...ids);
    all.replicas.push(
      first,
      ...ids.slice(1).map((id) => new TestReplica(all.scheduler, id, { ...options, start: "join" })),
    );
    await all.heal();
    const clock = (): number => 1_700_000_000_000 + all.scheduler.now;
    all.parts = all.replicas.map(({ replica, id }) => partsOf(replica, id, clock, requiresManualApproval));
    all.nodes = all.parts.map(({ nodes }) => nodes);
    await all.nodes[0]?.register(caller, registrationOf("n"));
    await all.settle();
    return all;
  }

  async settle(): Promise<void> {
    await this.scheduler.runUntil(this.scheduler.now + 5_000);
  }

  cut(): void {
    for (const wire of this.#wires.splice(0)) wire.cut();
  }

  async heal(): Promise<void> {
    this.cut();
    for (const index of this.replicas.keys()) for (let other = 0; other < index; other++) this.link(other, index);
    await this.settle();
  }

  link(index: number, other: number): void {
    const [a, b] = [this.replicas[index], this.replicas[other]];
    if (a && b) this.#wires.push(connect(a, b));
  }

  approvals(): string[] {
    return this.nodes.map((nodes) => nodes.get("n").approval);
  }

  conflicts(): number[] {
    return this.replicas.map(({ replica }) => replica.conflicts().length);
  }
}

function partsOf(
  replica: TestReplica["replica"],
  controllerId: string,
  clock: () => number,
  requiresManualApproval: boolean,
) {
  const records = openRecords(replica);
  const rejects = watchRejects(records);
  const certificates = watchCertificates(records, clock);
  const nodes = manageNodes({
    records,
    certificates,
    rejects,
    liveness: watchNodeLives({ replica, controllerId, staleAfterMs: 90_000, clock, monotonic: clock }),
    names: watchNodeNames(records),
    controllerId,
    requiresManualApproval: () => requiresManualApproval,
    endpoints: () => [],
    clock,
    monotonic: clock,
  });
  return { records, rejects, certificates, nodes };
}
