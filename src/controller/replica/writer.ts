// “Last writer wins” (docs/replication.md): stamps each write above all that it has seen, or refuses it.
import { encodeStamp, nextStamp } from "#crdt/hlc.ts";
import { compareRegisters } from "#crdt/merge-kind.ts";
import { encodePage } from "#crdt/page.ts";
import { isSameDot, maxKeyBytes, maxValueBytes, type Register } from "#crdt/register.ts";
import { contextOf, type Context } from "#crdt/version-vector.ts";
import { aheadOf, raiseClockAlarms } from "./clock-alarms.ts";
import type { Core } from "./replica-core.ts";
import { authKeyOf } from "./registered-controllers.ts";
import type { Outbox } from "./outbox.ts";
import { WriteRefused, type Change, type WriteRefusal, type Written } from "./replica.ts";

const maxChanges = 500;
const maxTransactionBytes = 512 * 1024;

/** Local transactions: checks, stamps, journals, applies, acknowledges and pushes each, in this order. */
export class Writer {
  readonly #core: Core;
  readonly #outbox: Outbox;
  /** The registers that are being journaled, by key; later writes are checked against them, too. */
  readonly #pending = new Map<string, Register>();
  #context: { readonly of: string; readonly context: Context } | undefined;

  constructor(core: Core, outbox: Outbox) {
    this.#core = core;
    this.#outbox = outbox;
  }

  write(changes: readonly Change[]): Promise<Written> {
    return new Promise((resolve, reject) => {
      const attempt = (): void => {
        try {
          this.#start(changes, resolve, reject);
        } catch (error) {
          reject(error as Error);
        }
      };
      try {
        checkSizes(changes);
        this.#checkWritable();
      } catch (error) {
        return reject(error as Error);
      }
      this.#whenBelieved(() => this.#core.generation.whenUsable(() => this.#core.whenSettled(attempt)));
    });
  }

  /** Runs a write. Without another controller to compare clocks with, it waits until a clock that jumped is trusted again. */
  #whenBelieved(run: () => void): void {
    if (this.#core.hasCompany || this.#core.guard.jump({ isAlone: true }) === 0) return run();
    this.#core.after(100, () => this.#whenBelieved(run));
  }

  /** The code with which a write would be refused now. */
  refusal(): WriteRefusal | undefined {
    const { state, options, isStopped, fullExchange, guard, generation } = this.#core;
    if (isStopped) return "STOPPED";
    if (!state.ready || state.isBehind || fullExchange || generation.isRecovering) return "NOT_READY";
    if (state.map.get(authKeyOf(options.id))?.text === null) return "NOT_READY";
    if (this.#core.duplicates.isOneTooMany) return "TWO_COPIES";
    if (guard.isFenced()) return "FENCED";
    if (this.#core.hasCompany && guard.jump({ isAlone: false }) !== 0) return "CLOCK_JUMP";
    return aheadOf(this.#core) > 0 ? "CLOCK_SKEW" : undefined;
  }

  #checkWritable(): void {
    const refusal = this.refusal();
    if (refusal === undefined) return;
    // Only if the alarm is not raised yet: computing it iterates over all registers, and each status request does so anyway.
    if (!this.#core.alarms.has("CLOCK_AHEAD", this.#core.options.id)) raiseClockAlarms(this.#core);
    throw new WriteRefused(refusal, reasons[refusal]);
  }

  #start(changes: readonly Change[], done: (written: Written) => void, failed: (error: Error) => void): void {
    this.#checkWritable();
    for (const { key, ifMatch } of changes) if (ifMatch !== undefined) this.#checkMatch(key, ifMatch);
    const registers = this.#stamp(changes);
    for (const register of registers) this.#pending.set(register.key, register);
    const forget = (): void => {
      for (const register of registers)
        if (this.#pending.get(register.key) === register) this.#pending.delete(register.key);
    };
    this.#commit(
      registers,
      (written) => {
        forget();
        done(written);
      },
      (cause) => {
        forget();
        failed(new WriteRefused("FULL", reasons.FULL, { cause }));
      },
    );
  }

  /**
   * Writes present registers again with a stamp above all seen ones; works also during a full exchange, when no other write
   * is accepted.
   */
  rewrite(standing: readonly Register[], done: () => void, failed: () => void): void {
    const { state } = this.#core;
    const { origin: o } = this.#core.generation;
    state.clock = nextStamp(state.clock, this.#core.guard.trusted());
    const { ms, c } = state.clock;
    const s = this.#core.generation.nextSeq();
    const x = this.#contextNow();
    this.#commit(
      standing.map(({ key, text }): Register => ({ key, text, ms, c, o, s, x })),
      done,
      failed,
    );
  }

  /** Commits an own transaction. Every one must pass here, since a push claims that the outbox is complete. */
  #commit(registers: readonly Register[], done: (written: Written) => void, failed: (cause: unknown) => void): void {
    const { o, s, ms, c } = registers[0] as Register;
    this.#core.commit(
      [{ t: "apply", page: encodePage(registers), upto: [[o, s]] }],
      registers,
      () => {
        done({ o, s, hlc: encodeStamp({ ms, c }) });
        this.#outbox.add(registers);
      },
      failed,
    );
  }

  #checkMatch(key: string, ifMatch: NonNullable<Change["ifMatch"]> | null): void {
    const present = this.#standing(key);
    const isLive = present !== undefined && present.text !== null;
    if (ifMatch === null ? isLive : !isLive || !isSameDot(present, ifMatch))
      throw new WriteRefused("CONFLICT", `${key} was changed meanwhile`, { key });
  }

  #stamp(changes: readonly Change[]): readonly Register[] {
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
    for (const register of drafts) this.#checkWins(register);
    state.clock = stamp;
    const s = this.#core.generation.nextSeq();
    return drafts.map((register) => ({ ...register, s }));
  }

  /** The register that a write competes with: of the one that is being journaled and the present one, the winner. */
  #standing(key: string): Register | undefined {
    const pending = this.#pending.get(key);
    const present = this.#core.state.map.get(key);
    if (!pending || !present) return pending ?? present;
    return compareRegisters(this.#core.state.rules.mergeKindOf(key), pending, present) > 0 ? pending : present;
  }

  /** Refuses a write that would lose in spite of its stamp: some merge kinds compare values (approvals within an epoch, grow-only kinds). */
  #checkWins(register: Register): void {
    const { key } = register;
    const kind = this.#core.state.rules.mergeKindOf(key);
    if (kind === "lww") return;
    const present = this.#standing(key);
    if (present && compareRegisters(kind, register, present) <= 0)
      throw new WriteRefused("CONFLICT", `${key} stands, and this does not override it`, { key });
  }

  /** The present context; writes that have seen the same transactions share one object. */
  #contextNow(): Context {
    const { origin } = this.#core.generation;
    const context = contextOf(this.#core.state.map.vector, origin);
    const of = `${context.origins.join()} ${context.seqs.join()}`;
    if (this.#context?.of !== of) this.#context = { of, context };
    return this.#context.context;
  }
}

const reasons: Readonly<Record<WriteRefusal, string>> = {
  STOPPED: "this controller is stopping",
  NOT_READY: "this controller has not caught up with its cluster yet, or was removed from it",
  FENCED: "this controller's clock is too far from its peers'; it is read-only until that is set right",
  CLOCK_JUMP: "this controller's clock has jumped; nothing is stamped by it until a peer's clock agrees",
  CLOCK_SKEW: "this controller has stamped or seen what lies ahead of its clock; it is read-only until then",
  TWO_COPIES: "another process runs as this controller; one of the two must be stopped",
  CONFLICT: "changed meanwhile",
  FULL: "this controller's disk cannot take the write",
  TOO_LARGE: "too large",
};

function checkSizes(changes: readonly Change[]): void {
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
