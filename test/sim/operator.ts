import { ackConflict, takeLoser } from "#controller/cluster/conflicts.ts";
import { decodeDot } from "#controller/cluster/dots.ts";
import { openRecords } from "#controller/cluster/records.ts";
import { Refused } from "#controller/cluster/refused.ts";
import { approvalOf, watchRejects } from "#controller/cluster/rejects.ts";
import { keys } from "#controller/cluster/registers.ts";
import type { Replica } from "#controller/replica/create-replica.ts";
import type { Dot } from "#crdt/register.ts";
import type { Decisions } from "./decisions.ts";
import type { Random } from "#support/random.ts";
import { Violation } from "./violation.ts";

/** An operator at one controller; every action but a plain write is the product's own code. */
export class Operator {
  readonly #replica: Replica;
  readonly #random: Random;
  readonly #records: ReturnType<typeof openRecords>;
  readonly #rejects: ReturnType<typeof watchRejects>;

  constructor(replica: Replica, random: Random) {
    this.#replica = replica;
    this.#random = random;
    this.#records = openRecords(replica);
    this.#rejects = watchRejects(this.#records, () => this.#name());
  }

  #name(): string {
    return this.#random.below(2 ** 48).toString(16);
  }

  approvalOf(node: string): string {
    const approval = this.#records.get("approval", keys.node(node).approval);
    return approvalOf({ approval, rejects: this.#rejects.of(node) });
  }

  /** Reads a node's state, and approves or rejects the node; undefined if nothing changes or the controller refuses. */
  async decide(node: string, decisions: Decisions): Promise<Dot | undefined> {
    const by = `operator ${this.#name()}`;
    const state = this.#random.pick(["approved", "rejected"] as const);
    const rejects = keys.node(node).reject("");
    const read = [...this.#replica.entries(rejects)].map(([key]) => key);
    const changes = this.#rejects.decide(node, { state, by });
    if (changes.length === 0 && state === "rejected")
      throw new Violation(`(11) ${node} is rejected again, and nothing of it would be written`);
    if (changes.length === 0) return undefined;
    decisions.made(by, { node, state, read });
    return this.#asWritten(this.#records.write(changes));
  }

  /** Acknowledges one of the listed conflicts, or takes its loser; undefined if no conflict is listed or the controller refuses. */
  async resolveConflict(): Promise<Dot | undefined> {
    const listed = this.#replica.conflicts();
    if (listed.length === 0) return undefined;
    const { id, key } = this.#random.pick(listed);
    const isTaken = this.#random.chance(0.3) && !key.startsWith("node/");
    const parts = { records: this.#records, rejects: this.#rejects };
    const change = isTaken ? takeLoser(parts, id, "operator") : ackConflict(this.#records, id);
    return this.#asWritten(change.then(({ dot }) => dot));
  }

  async #asWritten(change: Promise<string>): Promise<Dot | undefined> {
    try {
      return decodeDot(await change) ?? undefined;
    } catch (error) {
      if (error instanceof Refused) return undefined;
      throw error;
    }
  }
}
