import type { RuntimeFacts } from "#api/runtime-facts.ts";
import { keys } from "#controller/cluster/registers.ts";
import { openRecords } from "#controller/cluster/records.ts";
import { manifestHashOf, indexUpdates, type UpdateRecords } from "#controller/updates/update-records.ts";
import type { ViewParts } from "#controller/updates/update-views.ts";
import { UpdateStatement } from "#rollout/spec.ts";
import { memoryReplica } from "./memory-replica.ts";
import type { SteppedRollout } from "./stepped-rollout.ts";

const now = 1_000_000;
const at = new Date(now).toISOString();

/** A controller's records of a cluster and its updates, in memory; no update is carried out. */
export class KnownUpdates {
  readonly parts: ViewParts & { readonly members: () => readonly string[] };

  constructor(controllerId = "c1", replica = memoryReplica(() => now, controllerId)) {
    const records = openRecords(replica);
    const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };
    this.parts = {
      records,
      index: indexUpdates(records),
      controllerId,
      liveness: { of: () => ({ isReady: true, lastSeenAt: now }) },
      controllers: { peers: () => [], isMember: () => false },
      audit: { record: () => undefined },
      log: silent,
      clock: () => now,
      monotonic: () => 0,
      timers: { after: () => () => undefined },
      isHeard: () => true,
      members: () => ["c1", "c2"],
      endpointOf: () => undefined,
    };
  }

  /** Writes approved, ready nodes that can be updated; each is named like its id. */
  async nodes(...ids: readonly string[]): Promise<this> {
    return this.#write(ids, { id: "/nix/store/old", canUpdate: true });
  }

  /** As `nodes`, for nodes that do not run NixOS. */
  async debian(...ids: readonly string[]): Promise<this> {
    return this.#write(ids, { id: "/nix/store/old", canUpdate: true, nixos: false });
  }

  async #write(ids: readonly string[], runtime: RuntimeFacts): Promise<this> {
    const facts = { address: "192.0.2.1", dc: "DC1", roles: [], labels: {}, cpu: 1, memory: 1, version: "1.0" };
    const certificate = { key: "k", serial: "01", certificateExpires: at, registeredAt: at };
    await this.parts.records.write(
      ids.flatMap((id) => [
        { key: keys.node(id).reg, value: { hostname: id, ...facts, ...certificate, runtime } },
        { key: keys.node(id).approval, value: { epoch: 0, state: "approved", by: "operator ann" } },
      ]),
    );
    return this;
  }

  /** Writes the records of an update at the rollout's present state, and reads them. */
  async update({ view }: SteppedRollout): Promise<UpdateRecords> {
    const { name, spec, generation, progress, rows, reports, answers, owner } = view;
    const statement = UpdateStatement.parse({ kind: "ClusterUpdate", cluster: "lab", name, spec, signedAt: at });
    const signed = { statement: JSON.stringify(statement), signature: "", signer: "" };
    const of = keys.update(name);
    const head = {
      generation,
      hash: manifestHashOf(statement),
      signed,
      createdAt: at,
      updatedAt: at,
      by: "operator ann",
    };
    await this.parts.records.write([
      { key: of.head, value: head },
      { key: of.owner, value: { ...owner, signed } },
      ...(progress ? [{ key: of.progress, value: progress }] : []),
      ...[...rows].map(([id, value]) => ({ key: of.row(id), value })),
      ...[...reports].map(([id, value]) => ({ key: of.report(id), value })),
      ...[...answers].map(([key, value]) => {
        const [node = "", hook = ""] = key.split("/");
        return { key: of.hook(node, hook), value };
      }),
    ]);
    const update = this.parts.index.read(name);
    if (!update) throw new Error(`the update “${name}” cannot be read`);
    return update;
  }

  stop(): void {
    this.parts.index.stop();
    this.parts.records.replica.stop();
  }
}
