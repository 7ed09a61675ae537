import { hasSeen, lossId } from "#crdt/conflict.ts";
import { compareStamps, witness, zero } from "#crdt/hlc.ts";
import type { Stamp } from "#crdt/hlc.ts";
import { PageReader } from "#crdt/page.ts";
import type { Page } from "#crdt/page.ts";
import type { Dot, Register } from "#crdt/register.ts";
import { covers } from "#crdt/version-vector.ts";
import { controllerOf } from "#controller/replica/registered-controllers.ts";
import type { PeerMessage } from "#controller/replica/messages.ts";
import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import type { ConflictRecord } from "#controller/replica/conflict-record.ts";
import type { ClusterState } from "#controller/replica/cluster-state.ts";
import type { Replica } from "#controller/replica/create-replica.ts";
import { isAtLeast, mergeKindOf } from "./kinds.ts";
import { Decisions } from "./decisions.ts";
import type { SimNode } from "./node.ts";
import { Violation } from "./violation.ts";

interface Acked {
  readonly dot: Dot;
  readonly registers: readonly Register[];
  /** Whether all controllers that had it were lost or set back. */
  isExcused: boolean;
}

/** An outside observer, which knows all written and all acknowledged transactions, and compares them with the controllers' states. */
export class History {
  readonly #reader = new PageReader();
  /** Transactions by dot, once durable anywhere. */
  readonly #written = new Map<string, readonly Register[]>();
  readonly #byKey = new Map<string, Register[]>();
  readonly #appended = new Map<string, readonly Register[]>();
  readonly #acked: Acked[] = [];
  readonly #seen = new Map<SimNode, Stamp>();
  readonly decisions = new Decisions();
  /** The names of losses that operators acknowledged. */
  readonly #closed = new Set<string>();
  #conflicts = 0;

  readonly #nodes: () => readonly SimNode[];

  constructor(nodes: () => readonly SimNode[]) {
    this.#nodes = nodes;
  }

  get ackedCount(): number {
    return this.#acked.length;
  }

  get conflictCount(): number {
    return this.#conflicts;
  }

  /** (4) A new transaction's stamp is above all stamps that its writer had seen. */
  appended(node: SimNode, records: readonly JournalRecord[]): void {
    const registers = this.#ownTransaction(node, records);
    if (!registers) return;
    const [first] = registers as readonly [Register];
    const seen = this.#seen.get(node) ?? zero;
    if (compareStamps(first, seen) <= 0)
      throw new Violation(
        `(4) ${nameOf(first)} is stamped ${first.ms}.${first.c}, below ${seen.ms}.${seen.c} that ${node.id} had seen`,
      );
    if (!this.#isAnyoneSetBack()) for (const register of registers) this.#checkWins(register);
    this.#appended.set(nameOf(first), registers);
  }

  /** (4) A write is not accepted if, by its kind, it loses to a write that its writer had seen. */
  #checkWins(register: Register): void {
    const { key } = register;
    for (const other of this.#byKey.get(key) ?? [])
      if (hasSeen(register, other) && !isAtLeast(key, register, other))
        throw new Violation(`(4) ${nameOf(register)} of ${key} was accepted below ${nameOf(other)}, which it had seen`);
  }

  /** Whether a disk was lost or set back: then acknowledged writes may be missing until a full exchange. */
  #isAnyoneSetBack(): boolean {
    return this.#nodes().some(({ lineage, isLost }) => lineage > 0 || isLost);
  }

  /** (3) No dot is used twice. */
  durable(node: SimNode, records: readonly JournalRecord[]): void {
    const own = this.#ownTransaction(node, records);
    if (own) {
      const name = nameOf(own[0] as Register);
      const known = this.#written.get(name);
      if (known && contentOf(known) !== contentOf(own)) throw new Violation(`(3) ${name} was written twice`);
      if (!known) {
        this.#written.set(name, own);
        for (const register of own) this.#remember(register);
        for (const register of own) this.#checkUnforgotten(register);
      }
    }
    let seen = this.#seen.get(node) ?? zero;
    for (const register of own ?? records.flatMap((record) => this.#registersOf(record)))
      seen = witness(seen, register);
    this.#seen.set(node, seen);
  }

  /** (9) A push has every transaction that it claims. */
  sent(message: PeerMessage): void {
    if (message.t !== "push") return;
    const { origin, from, upto } = message;
    const held = new Set(this.#reader.read(message.page).map(({ key, s }) => `${s} ${key}`));
    for (let s = from + 1; s <= upto; s++)
      for (const { key } of this.#written.get(nameOf({ o: origin, s })) ?? [])
        if (!held.has(`${s} ${key}`))
          throw new Violation(`(9) a push of ${origin} up to ${upto} claims ${s} and does not hold its ${key}`);
  }

  /** (10) No controller forgets a deletion while a write below it, made without knowledge of it, is not yet journaled everywhere. */
  #checkUnforgotten(written: Register): void {
    const { key } = written;
    const deletions = (this.#byKey.get(key) ?? []).filter(
      (other) => other.text === null && isAtLeast(key, other, written) && !hasSeen(written, other),
    );
    if (deletions.length === 0 || this.#isAnyoneSetBack()) return;
    for (const { id, state } of this.#nodes())
      for (const deletion of deletions)
        if (state && hasForgotten(state, deletion))
          throw new Violation(
            `(10) ${id} forgot ${nameOf(deletion)}, which deleted ${key}, before ${nameOf(written)} had arrived`,
          );
  }

  /** The node's disk was set back to these records. */
  restored(node: SimNode, records: readonly JournalRecord[]): void {
    let seen = zero;
    for (const register of records.flatMap((record) => this.#registersOf(record))) seen = witness(seen, register);
    this.#seen.set(node, seen);
  }

  acked(dot: Dot): void {
    const registers = this.#written.get(nameOf(dot)) ?? this.#appended.get(nameOf(dot));
    if (!registers) throw new Violation(`${nameOf(dot)} was acknowledged and never journaled`);
    this.#acked.push({ dot, registers, isExcused: false });
  }

  /** A disk is gone or was set back: writes that no survivor holds may be missing from now on. */
  excuse(survivors: readonly SimNode[]): void {
    for (const entry of this.#acked)
      if (!survivors.some(({ durableVector }) => covers(durableVector, entry.dot.o, entry.dot.s)))
        entry.isExcused = true;
  }

  /** A disk was set back: transactions that only it had count as never written. */
  forget(survivors: readonly SimNode[]): void {
    for (const [name, [first]] of this.#written)
      if (first && !survivors.some(({ durableVector }) => covers(durableVector, first.o, first.s)))
        this.#written.delete(name);
  }

  /** (1) Every acknowledged write is there, or a write that dominates it. So (6) no deletion is undone, and (8) no reject but by a new epoch. */
  checkAcked(replica: Replica, stateOf: (key: string) => Register | undefined): void {
    for (const { registers, isExcused } of this.#acked) {
      if (isExcused) continue;
      for (const register of registers) {
        const present = stateOf(register.key);
        const isHeld = present
          ? isAtLeast(register.key, present, register)
          : (this.#byKey.get(register.key) ?? []).some(
              (other) => other.text === null && isAtLeast(register.key, other, register),
            );
        if (!isHeld)
          throw new Violation(
            `(1) acknowledged ${nameOf(register)} of ${register.key} is lost at ${replica.status().id}: ` +
              `there stands ${present ? nameOf(present) : "nothing"}`,
          );
      }
    }
  }

  /**
   * (5) A replica lists exactly the due conflicts, once for each key. A write other than the winner is due if no later writer of the key had
   * seen it. Equal values and acknowledged conflicts are not due. `isExact`: no disk was lost or set back.
   */
  checkConflicts(id: string, found: readonly ConflictRecord[], isExact: boolean): void {
    const listed = new Map<string, string>();
    for (const { key, winner, loser, others = [] } of found) {
      if (listed.has(key)) throw new Violation(`(5) ${id} lists ${key} twice`);
      const lost = [loser, ...others];
      listed.set(key, [nameOf(winner), ...lost.map(nameOf).toSorted()].join(" "));
      const standing = this.#registerOf(winner, key);
      for (const side of lost) {
        const register = this.#registerOf(side, key);
        if (!register || !standing) continue;
        if (hasSeen(standing, register) || hasSeen(register, standing) || standing.text === register.text)
          throw new Violation(
            `(5) ${id} lists ${nameOf(side)} of ${key}, which is in no conflict with ${nameOf(winner)}`,
          );
      }
    }
    this.#conflicts = Math.max(this.#conflicts, found.length);
    if (!isExact) return;
    const due = new Map(Array.from(this.#byKey.keys(), (key) => [key, this.#dueOf(key)] as const));
    for (const key of new Set([...due.keys(), ...listed.keys()]))
      if ((due.get(key) ?? "") !== (listed.get(key) ?? ""))
        throw new Violation(
          `(5) ${id} lists ${listed.get(key) ?? "nothing"} of ${key}, due is ${due.get(key) || "nothing"}`,
        );
  }

  #dueOf(key: string): string {
    const registers = this.#byKey.get(key) ?? [];
    if (mergeKindOf(key) === "remove-wins") return "";
    const standing = registers.reduce((best, other) => (isAtLeast(key, best, other) ? best : other));
    const due = registers.filter(
      (register) =>
        register !== standing &&
        register.text !== standing.text &&
        !registers.some((other) => other !== register && hasSeen(other, register)) &&
        !this.#closed.has(lossId(key, register)),
    );
    return due.length === 0 ? "" : [nameOf(standing), ...due.map(nameOf).toSorted()].join(" ");
  }

  checkDecisions(id: string, approvalOf: (node: string) => string, isExact: boolean): void {
    const written = [...this.#written.values()].flat();
    const acked = this.#acked.flatMap(({ registers, isExcused }) => (isExcused ? [] : registers));
    this.decisions.check({ written, acked }, { id, approvalOf, isExact });
  }

  #registerOf(dot: Dot, key: string): Register | undefined {
    return this.#written.get(nameOf(dot))?.find((register) => register.key === key);
  }

  #remember(register: Register): void {
    const list = this.#byKey.get(register.key);
    if (list) list.push(register);
    else this.#byKey.set(register.key, [register]);
    const closed = /^conflict\/(.+)$/.exec(register.key)?.[1];
    if (closed !== undefined) this.#closed.add(closed);
  }

  /** The registers of a local transaction, if the journaled records are one. */
  #ownTransaction(node: SimNode, records: readonly JournalRecord[]): readonly Register[] | undefined {
    const [record] = records;
    if (records.length !== 1 || record?.t !== "apply") return undefined;
    if (record.from || record.hlc !== undefined || record.full || record.repair || record.upto.length !== 1)
      return undefined;
    const registers = this.#reader.read(record.page);
    return registers[0] && controllerOf(registers[0].o) === node.id ? registers : undefined;
  }

  #registersOf(record: JournalRecord): readonly Register[] {
    return record.t === "meta" ? [] : this.#reader.read(record.page satisfies Page);
  }
}

function hasForgotten({ map }: ClusterState, { key, o, s }: Register): boolean {
  if (!covers(map.vector, o, s)) return false;
  return !map.get(key) && map.siblings.of(key).length === 0;
}

export function nameOf({ o, s }: Dot): string {
  return `${o}:${s}`;
}

function contentOf(registers: readonly Register[]): string {
  return JSON.stringify(registers.map(({ key, text, ms, c }) => [key, text, ms, c]));
}
