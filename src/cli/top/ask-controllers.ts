import type { ControllerView, ReplicationStatus } from "#api/schemas.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import type { Tellings } from "./read-fleet.ts";

/** A controller that does not answer within this time is shown as silent; nobody waits for it. */
const limitMs = 3000;

/** Asks each other controller what it says of its own replication, beside all else: none of them holds the view up. */
export class OtherControllers {
  readonly #cluster: Cluster;
  readonly #told = new Map<string, ReplicationStatus | { readonly silent: string }>();
  readonly #asking = new Map<string, Promise<void>>();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  get tellings(): Tellings {
    return this.#told;
  }

  /** Asks those of them that are not being asked already; calls back for each answer. */
  ask(controllers: readonly ControllerView[], onTold: () => void): void {
    const known = new Set(controllers.map(({ controllerId }) => controllerId));
    for (const id of this.#told.keys()) if (!known.has(id)) this.#told.delete(id);
    for (const { controllerId: id, address, state } of controllers) {
      if (state === "self" || address === "" || this.#asking.has(id)) continue;
      const asking = this.#askOne(id, address).then(onTold);
      this.#asking.set(
        id,
        asking.finally(() => this.#asking.delete(id)),
      );
    }
  }

  /** When all that were asked have answered, or have not in time. */
  async settled(): Promise<void> {
    await Promise.all(this.#asking.values());
  }

  async #askOne(id: string, address: string): Promise<void> {
    try {
      const signal = AbortSignal.timeout(limitMs);
      this.#told.set(id, await this.#cluster.clientAt(address).call("replicationStatus", {}, { signal }));
    } catch (error) {
      const isLate = error instanceof Error && error.name === "TimeoutError";
      this.#told.set(id, {
        silent: isLate ? `${address} gave no answer within ${limitMs / 1000} s` : (error as Error).message,
      });
    }
  }
}
