// “Last writer wins” (docs/replication.md): stamps each write above all that it has seen, or refuses it.
import { encodeStamp, nextStamp } from "#crdt/hlc.ts";
import { compareRegisters } from "#crdt/merge-kind.ts";
import { encodePage } from "#crdt/page.ts";
import { isSameDot, maxKeyBytes, maxValueBytes, type Register } from "#crdt/register.ts";
import { causalContextOf, type CausalContext } from "#crdt/version-vector.ts";
import { raiseClockAlarms, stampWaitOf } from "./clock-alarms.ts";
import type { Core } from "./replica-core.ts";
import { authKeyOf } from "./registered-controllers.ts";
import type { Outbox } from "./outbox.ts";
import type { JournalRecord } from "./replica-ports.ts";
import { WriteRefused, type CommittedWrite, type KeyChange, type WriteRefusal } from "./replica.ts";

const maxChanges = 500;
const maxTransactionBytes = 512 * 1024;

/** Local transactions: checks, stamps, journals, applies, acknowledges and pushes each, in this order. */
export class Writer {
  readonly #core: Core;
  readonly #outbox: Outbox;
  /** The registers that are being journaled, by key; later writes are checked against them, too. */
  readonly #pending = new Map<string, Register>();
  #context: { readonly vector: string; readonly context: CausalContext } | undefined;

  constructor(core: Core, outbox: Outbox) {
    this.#core = core;
    this.#outbox = outbox;
  }

  /** Writes one transaction; resolves when it is durable. @throws WriteRefused */
  async write(changes: readonly KeyChange[]): Promise<CommittedWrite> {
    checkSizes(changes);
    this.#checkWritable();
    await this.#untilClockTrusted();
    await this.#core.generation.untilUsable();
    const { committed } = await this.#core.commits.inTurn(() => this.#start(changes));
    return committed;
  }

  /** Without another controller to compare clocks with, a write waits until a clock that jumped is trusted again. */
  async #untilClockTrusted(): Promise<void> {
    while (!this.#core.hasCompany && this.#core.guard.jump({ isAlone: true }) !== 0) await this.#core.sleep(100);
  }

  /** The code with which a write would be refused now; undefined if none. */
  refusal(): WriteRefusal | undefined {
    const { state, options, isStopped, fullExchange, guard, generation } = this.#core;
    if (isStopped) return "STOPPED";
    if (!state.ready || state.isBehind || fullExchange || generation.isRecovering) return "NOT_READY";
    if (state.map.get(authKeyOf(options.id))?.text === null) return "NOT_READY";
    if (this.#core.duplicates.mustNotWrite) return "TWO_COPIES";
    if (guard.isFenced()) return "FENCED";
    if (this.#core.hasCompany && guard.jump({ isAlone: false }) !== 0) return "CLOCK_JUMP";
    return stampWaitOf(this.#core) > 0 ? "CLOCK_SKEW" : undefined;
  }

  #checkWritable(): void {
    const refusal = this.refusal();
    if (refusal === undefined) return;
    // Only if the alarm is not raised yet: computing it iterates over all registers, and each status request does so anyway.
    if (!this.#core.alarms.has("CLOCK_AHEAD", this.#core.options.id)) raiseClockAlarms(this.#core);
    throw new WriteRefused(refusal);
  }

  /** Stamps and journals a write in one turn, so that no other change comes between. */
  #start(changes: readonly KeyChange[]): { readonly committed: Promise<CommittedWrite> } {
    this.#checkWritable();
    for (const { key, ifMatch } of changes) if (ifMatch !== undefined) this.#checkMatch(key, ifMatch);
    return { committed: this.#commit(this.#stamp(changes)) };
  }

  /**
   * Writes registers again with a stamp above all seen ones; works also during a full exchange, when no other write
   * is accepted.
   */
  async rewrite(standing: readonly Register[]): Promise<void> {
    const { state, guard, generation } = this.#core;
    const stamp = nextStamp(state.clock, guard.trustedTime());
    state.advanceClock(stamp);
    const draft = { ms: stamp.ms, c: stamp.c, o: generation.origin, s: generation.nextSeq(), x: this.#contextNow() };
    const rewritten = standing.map(({ key, text }): Register => ({ key, text, ...draft }));
    await this.#commit(rewritten);
  }

  /** Commits an own transaction. Every own transaction must pass here, since a push claims that the outbox is complete. */
  async #commit(registers: readonly Register[]): Promise<CommittedWrite> {
    const { o, s, ms, c } = registers[0] as Register;
    for (const register of registers) this.#pending.set(register.key, register);
    const records: readonly JournalRecord[] = [{ t: "apply", page: encodePage(registers), upto: [[o, s]] }];
    try {
      await this.#core.commits.commit(records, registers);
    } finally {
      for (const register of registers)
        if (this.#pending.get(register.key) === register) this.#pending.delete(register.key);
    }
    this.#outbox.add(registers);
    return { o, s, hlc: encodeStamp({ ms, c }) };
  }

  #checkMatch(key: string, ifMatch: NonNullable<KeyChange["ifMatch"]> | null): void {
    const present = this.#standing(key);
    const isLive = present !== undefined && present.text !== null;
    if (ifMatch === null ? isLive : !isLive || !isSameDot(present, ifMatch))
      throw new WriteRefused("CONFLICT", `${key} was changed meanwhile`, { key });
  }

  #stamp(changes: readonly KeyChange[]): readonly Register[] {
    const { state, options } = this.#core;
    const stamp = nextStamp(state.clock, options.clock.wall());
    const draft = { ms: stamp.ms, c: stamp.c, o: this.#core.generation.origin, s: Number.MAX_SAFE_INTEGER };
    const x = this.#contextNow();
    const drafts = changes.map(({ key, value }): Register => ({
      key,
      text: value === null ? null : JSON.stringify(value),
      ...draft,
      x,
    }));
    for (const register of drafts) this.#refuseLosing(register);
    state.advanceClock(stamp);
    const s = this.#core.generation.nextSeq();
    return drafts.map((register) => ({ ...register, s }));
  }

  /** The register that a write competes with: the winner of the present register and the one that is being journaled. */
  #standing(key: string): Register | undefined {
    const pending = this.#pending.get(key);
    const present = this.#core.state.map.get(key);
    if (!pending || !present) return pending ?? present;
    return compareRegisters(this.#core.state.rules.mergeKindOf(key), pending, present) > 0 ? pending : present;
  }

  /** Refuses a write that would lose in spite of its stamp: some merge kinds compare values (approvals within an epoch, grow-only kinds). */
  #refuseLosing(register: Register): void {
    const { key } = register;
    const kind = this.#core.state.rules.mergeKindOf(key);
    if (kind === "lww") return;
    const present = this.#standing(key);
    if (present && compareRegisters(kind, register, present) <= 0)
      throw new WriteRefused("CONFLICT", `${key} stands, and this does not override it`, { key });
  }

  /** The present context; writes that have seen the same transactions share one object. */
  #contextNow(): CausalContext {
    const { origin } = this.#core.generation;
    const context = causalContextOf(this.#core.state.map.vector, origin);
    const vector = `${context.origins.join()} ${context.seqs.join()}`;
    if (this.#context?.vector !== vector) this.#context = { vector, context };
    return this.#context.context;
  }
}

function checkSizes(changes: readonly KeyChange[]): void {
  if (changes.length === 0 || changes.length > maxChanges)
    throw new WriteRefused("TOO_LARGE", `a transaction has 1 to ${maxChanges} changes, not ${changes.length}`);
  const keys = new Set<string>();
  let bytes = 0;
  for (const { key, value } of changes) {
    if (key === "" || byteLength(key) > maxKeyBytes)
      throw new WriteRefused("TOO_LARGE", `a key has 1 to ${maxKeyBytes} bytes: ${key.slice(0, 80)}`, { key });
    const size = value === null ? 0 : byteLength(JSON.stringify(value));
    bytes += size;
    if (size > maxValueBytes || bytes > maxTransactionBytes)
      throw new WriteRefused("TOO_LARGE", `the value of ${key} is too large: ${size} bytes`, { key });
    if (keys.has(key)) throw new WriteRefused("CONFLICT", `${key} is changed twice in one transaction`, { key });
    keys.add(key);
  }
}

/** The length in UTF-8, without Node's Buffer. */
function byteLength(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit > 0x7f) bytes += unit > 0x7ff ? (unit >= 0xd800 && unit <= 0xdfff ? 1 : 2) : 1;
  }
  return bytes;
}
